import { ask, askJson, follow } from './api.ts'
import { h, show } from './dom.ts'
import { seconds, size, time } from './format.ts'
import type { Page } from './main.ts'
import { outputView } from './output-view.ts'
import { badge, failure } from './parts.ts'
import { type Artifact, isOver, type Job } from './views.ts'

/** One job: how it stands, its output as it comes, and what it left. */
export const jobPage =
  (id: string): Page =>
  (place, signal) => {
    const about = h('section')
    const artifacts = h('section')
    const problem = h('div')
    show(
      place,
      h('p', {}, h('a', { href: '#/' }, '← all jobs')),
      problem,
      about,
      outputView(id, signal),
      artifacts,
    )

    const look = async (): Promise<void> => {
      try {
        const job = await askJson<Job>(`/api/jobs/${id}`, { signal })
        show(about, ...aboutJob(job, act))
        if (!isOver(job.status)) return
        const answer = await askJson<{ artifacts: readonly Artifact[] }>(`/api/jobs/${id}/artifacts`, {
          signal,
        })
        show(artifacts, ...artifactList(id, answer.artifacts))
      } catch (error) {
        if (!signal.aborted) show(problem, failure(error))
      }
    }
    const act = async (work: () => Promise<void>): Promise<void> => {
      try {
        await work()
        await look()
      } catch (error) {
        show(problem, failure(error))
      }
    }
    const watch = async (): Promise<void> => {
      for await (const _ of follow(`/api/jobs/${id}/events/stream`, signal)) {
        dispatchEvent(new Event('jobs-changed'))
        await look()
      }
    }
    void look()
    watch().catch(error => show(problem, failure(error)))
  }

type Act = (work: () => Promise<void>) => Promise<void>

const aboutJob = (job: Job, act: Act): HTMLElement[] => {
  const facts: [string, HTMLElement | string | number | null][] = [
    ['Id', job.job_id],
    ['Part of', job.parent_id && h('a', { href: `#/jobs/${job.parent_id}` }, job.parent_id)],
    ['Runtime', job.runtime],
    ['Where', job.where ?? null],
    ['Agent', job.agent],
    ['Asked by', job.origin],
    ['Place in the queue', job.queue_position],
    ['Progress', job.progress],
    ['Created', time(job.created_at)],
    ['Started', time(job.started_at)],
    ['Ended', time(job.completed_at)],
    ['Took', seconds(job.duration_seconds)],
    ['Timeout', seconds(job.timeout_seconds)],
    ['Exit', job.signal ?? job.exit_code],
    ['Attempts', job.attempts > 1 ? job.attempts : null],
    [
      'Phases',
      Object.entries(job.phases)
        .map(([name, ms]) => `${name} ${seconds(ms / 1000)}`)
        .join(', '),
    ],
    [
      'Labels',
      Object.entries(job.labels)
        .map(([name, value]) => `${name}=${value}`)
        .join(', '),
    ],
  ]
  return [
    h('h1', {}, badge(job.status), ' ', job.task),
    h('div', { class: 'bar' }, actionOf(job, act)),
    ...(job.error === null
      ? []
      : [h('p', { class: 'problem' }, job.error.message, ' ', h('small', {}, job.error.hint))]),
    h(
      'dl',
      {},
      ...facts
        .filter(([, value]) => value !== null && value !== '')
        .map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
    ),
  ]
}

const actionOf = (job: Job, act: Act): HTMLElement =>
  isOver(job.status)
    ? h(
        'button',
        {
          on: {
            click: () =>
              void act(async () => {
                if (!confirm('Forget this job, its output and its artifacts?')) return
                await ask(`/api/jobs/${job.job_id}`, { method: 'DELETE' })
                location.hash = '#/'
              }),
          },
        },
        'Delete',
      )
    : h(
        'button',
        {
          disabled: job.cancel_requested,
          on: {
            click: () =>
              void act(async () => void (await ask(`/api/jobs/${job.job_id}/cancel`, { method: 'POST' }))),
          },
        },
        job.cancel_requested ? 'Cancelling…' : 'Cancel',
      )

const artifactList = (id: string, artifacts: readonly Artifact[]): HTMLElement[] =>
  artifacts.length === 0
    ? []
    : [
        h('h2', {}, 'Artifacts'),
        h(
          'ul',
          {},
          ...artifacts.map(({ path, size: bytes }) =>
            h(
              'li',
              {},
              h('button', { class: 'link', on: { click: () => void download(id, path) } }, path),
              ` ${size(bytes)}`,
            ),
          ),
        ),
      ]

/** A link cannot send the token; so the file comes by fetch and is handed over as a blob. */
const download = async (id: string, path: string): Promise<void> => {
  const encoded = path.split('/').map(encodeURIComponent).join('/')
  const response = await ask(`/api/jobs/${id}/artifacts/${encoded}`)
  const url = URL.createObjectURL(await response.blob())
  h('a', { href: url, download: path.split('/').at(-1) }).click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
