import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { CALLBACK_PATH } from '../../../src/guest/seed.ts'
import { begin as beginLab, never } from '../../support/begin-lab.ts'
import { until } from '../../support/engine.ts'
import { readIso } from '../../support/iso-reader.ts'
import type { GuestDriver, GuestSpec } from '../../support/pve/guests/driver.ts'

const addressIn = ({ cdroms }: GuestSpec): { url: string; token: string } => {
  const userData = readIso(cdroms[0]!)!.files.get('user-data')!.toString()
  const { write_files } = parse(userData) as { write_files: { path: string; content: string }[] }
  const file = write_files.find(one => one.path === CALLBACK_PATH)!
  const [url = '', token = ''] = Buffer.from(file.content, 'base64').toString().split('\n')
  return { url, token }
}

/** A machine whose runner speaks only the calls of the server that this one replaces. */
interface OlderRunner {
  readonly jobId: string
  call(action: string, body?: unknown, token?: string): Promise<{ status: number; body: unknown }>
}

const olderGuests = (run: (runner: OlderRunner) => Promise<void>): GuestDriver => ({
  start: async spec => {
    const ending = new AbortController()
    const { url, token } = addressIn(spec)
    const ask = async (path: string, init: RequestInit = {}, bearer = token) => {
      const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' }
      return fetch(`${url}${path}`, { ...init, headers, signal: ending.signal })
    }
    const live = async () => {
      let jobId: string | undefined
      while (jobId === undefined) jobId = /^job (\S+)$/m.exec(await (await ask('/guest/v1/work')).text())?.[1]
      await run({
        jobId,
        call: async (action, body, bearer) => {
          const init = { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body ?? {}) }
          const answer = await ask(`/callback/${jobId}/${action}`, init, bearer)
          return { status: answer.status, body: await answer.json() }
        },
      })
    }
    void live().catch(() => {})
    return { stop: async () => ending.abort(), shutdown: async () => true, agent: () => undefined }
  },
})

const finished = (jobId: string, more: Record<string, unknown> = {}) => ({
  job_id: jobId,
  status: 'success',
  exit_code: 0,
  output: 'all of it\n',
  duration_seconds: 1,
  ...more,
})

const begin = async (run: (runner: OlderRunner) => Promise<void>) => {
  const { lab, engine } = await beginLab({ emulator: { guests: olderGuests(run) } })
  const { job_id } = await engine.deputy.submit(
    { task: 'x', runtime: 'proxmox', statusMode: 'detailed' },
    'test',
  )
  const view = await engine.deputy.wait(job_id, { timeoutMs: 40_000, signal: never })
  return { lab, engine, view, result: await engine.deputy.result(job_id, {}) }
}

describe('a runner of the older kind', () => {
  it('reports status, heartbeats and its end in the shapes it knows', async () => {
    const answers: unknown[] = []
    const { lab, view, result } = await begin(async ({ jobId, call }) => {
      answers.push(await call('heartbeat'))
      answers.push(await call('status', { job_id: jobId, progress: 'half way', output: 'first half\n' }))
      answers.push(await call('complete', finished(jobId)))
    })
    const received = { status: 200, body: { received: true } }
    expect(answers).toEqual([received, received, received])
    expect(view).toMatchObject({ status: 'success', exit_code: 0 })
    expect(result.output).toContain('all of it\n')
    await until(() => lab.machines().length === 0 && lab.seeds().length === 0, 'nothing is left', 20_000)
  })

  it('may be done before anybody knew that it had begun', async () => {
    const { view } = await begin(async ({ jobId, call }) => {
      await call('complete', finished(jobId, { status: 'failed', exit_code: 3, error: 'no luck' }))
    })
    expect(view).toMatchObject({ status: 'failed', exit_code: 3 })
    expect(view.started_at).not.toBeNull()
  })

  it('is heard once: a second end, or a late one, changes nothing', async () => {
    const answers: number[] = []
    let late: (() => Promise<{ status: number }>) | undefined
    const { engine, view } = await begin(async ({ jobId, call }) => {
      const good = finished(jobId)
      const bad = finished(jobId, { status: 'failed', exit_code: 9, output: 'FORGED' })
      late = () => call('complete', bad)
      answers.push((await call('complete', good)).status)
      answers.push((await call('complete', bad)).status)
    })
    expect(view).toMatchObject({ status: 'success', exit_code: 0 })
    expect(answers[0]).toBe(200)
    await until(async () => (await engine.deputy.machines()).length === 0, 'the machine is gone', 20_000)
    await late!().catch(() => {})
    const after = await engine.deputy.result(view.job_id, {})
    expect(after).toMatchObject({ status: 'success', exit_code: 0 })
    expect(after.output).not.toContain('FORGED')
  })

  it('is not heard with a token that is not its own, about another job, or in words that make no sense', async () => {
    const answers: { status: number; body: unknown }[] = []
    const { view } = await begin(async ({ jobId, call }) => {
      answers.push(await call('complete', finished(jobId), 'a-token-that-somebody-made-up'))
      answers.push(await call('complete', finished('018f0000-0000-7000-8000-000000000001')))
      answers.push(await call('complete', '{"job_id": '))
      answers.push(await call('complete', finished(jobId, { exit_code: 'zero' })))
      await call('complete', finished(jobId))
    })
    expect(view.status).toBe('success')
    expect([401, 503]).toContain(answers[0]!.status)
    for (const answer of answers.slice(1))
      expect(answer).toMatchObject({ status: 400, body: { error: 'Invalid payload' } })
  })
})
