import { askJson } from './api.ts'
import { h, show } from './dom.ts'
import { failure } from './parts.ts'
import type { Job } from './views.ts'

/** A shell script, or a whole manifest as JSON. */
export const submitForm = (signal: AbortSignal): HTMLElement => {
  const task = h('textarea', {
    rows: '3',
    placeholder: 'A shell script, or a manifest as JSON: {"task": "…", "artifacts": ["*.txt"]}',
    'aria-label': 'Task',
    spellcheck: 'false',
  })
  const problem = h('div')
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    try {
      const job = await askJson<Job>('/api/jobs', { method: 'POST', body: manifestOf(task.value), signal })
      location.hash = `#/jobs/${job.job_id}`
    } catch (error) {
      show(problem, failure(error))
    }
  }
  return h(
    'form',
    { class: 'submit', on: { submit: event => void submit(event) } },
    task,
    h('button', {}, 'Submit a job'),
    problem,
  )
}

const manifestOf = (text: string): unknown =>
  text.trimStart().startsWith('{') ? JSON.parse(text) : { task: text }
