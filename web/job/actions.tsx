import { useSignal } from '@preact/signals'
import type { JobView } from '../../src/engine/deputy.ts'
import { isTerminal } from '../../src/jobs/states.ts'
import { deputy } from '../deputy.ts'
import { Confirm, Problem, type Question } from '../parts.tsx'
import { go } from '../router.ts'
import { runAgain } from '../run-again.ts'

export const JobActions = ({ job, onChange }: { job: JobView; onChange: () => void }) => {
  const question = useSignal<Question | undefined>(undefined)
  const problem = useSignal<unknown>(undefined)
  const id = job.job_id
  const act = async (work: () => Promise<void>): Promise<void> => {
    try {
      problem.value = undefined
      await work()
    } catch (error) {
      problem.value = error
    }
  }
  const rerun = () => act(async () => go(`#/jobs/${(await runAgain(id)).job_id}`))
  const cancel = () =>
    act(async () => {
      await deputy.cancel(id)
      onChange()
    })
  const remove = () =>
    act(async () => {
      await deputy.delete(id)
      go('#/jobs')
    })
  return (
    <>
      <div class="bar">
        {!isTerminal(job.status) && (
          <button type="button" class="danger" disabled={job.cancel_requested} onClick={() => void cancel()}>
            {job.cancel_requested ? 'Cancelling…' : 'Cancel'}
          </button>
        )}
        {job.status === 'running' && job.machine_id !== null && job.runtime !== 'proxmox' && (
          <a class="button" href={`#/terminal/${job.machine_id}`}>
            Terminal
          </a>
        )}
        <button type="button" onClick={() => void rerun()}>
          Run again
        </button>
        <a class="button" href={`#/new?from=${id}`}>
          Edit and run
        </a>
        {isTerminal(job.status) && (
          <button
            type="button"
            class="danger"
            onClick={() => {
              question.value = {
                text: 'Delete this job with its output and artifacts?',
                action: 'Delete',
                run: remove,
              }
            }}
          >
            Delete
          </button>
        )}
      </div>
      <Problem error={problem.value} />
      <Confirm question={question} />
    </>
  )
}
