import { type Signal, useSignal } from '@preact/signals'
import type { JobSummary } from '../../src/engine/deputy.ts'
import { isTerminal } from '../../src/jobs/states.ts'
import { deputy } from '../deputy.ts'
import { Confirm, Problem, type Question } from '../parts.tsx'
import { go } from '../router.ts'
import { runAgain } from '../run-again.ts'

interface Props {
  readonly selected: Signal<ReadonlySet<string>>
  readonly jobs: readonly JobSummary[]
  onDone(): void
}

/** What can be done with several jobs at once. */
export const Actions = ({ selected, jobs, onDone }: Props) => {
  const question = useSignal<Question | undefined>(undefined)
  const problem = useSignal<unknown>(undefined)
  const isBusy = useSignal(false)
  const chosen = jobs.filter(job => selected.value.has(job.job_id))
  const active = chosen.filter(job => !isTerminal(job.status))
  const over = chosen.filter(job => isTerminal(job.status))

  const each = async (
    targets: readonly JobSummary[],
    work: (id: string) => Promise<unknown>,
  ): Promise<void> => {
    isBusy.value = true
    problem.value = undefined
    for (const { job_id } of targets) {
      try {
        await work(job_id)
      } catch (error) {
        problem.value = error
      }
    }
    isBusy.value = false
    selected.value = new Set()
    onDone()
  }
  const cancel = () => each(active, deputy.cancel)
  const remove = () => each(over, deputy.delete)

  return (
    <>
      <Problem error={problem.value} />
      {chosen.length > 0 && (
        <div class="bar actions" role="toolbar" aria-label="Selected jobs">
          <strong>{chosen.length} selected</strong>
          <button type="button" disabled={isBusy.value || active.length === 0} onClick={() => void cancel()}>
            Cancel {active.length || ''}
          </button>
          <button type="button" disabled={isBusy.value} onClick={() => void each(chosen, runAgain)}>
            Run again
          </button>
          {chosen.length > 1 && (
            <button
              type="button"
              onClick={() => go(`#/compare?jobs=${chosen.map(job => job.job_id).join(',')}`)}
            >
              Compare
            </button>
          )}
          <button
            type="button"
            class="danger"
            disabled={isBusy.value || over.length === 0}
            onClick={() => {
              question.value = {
                text: `Delete ${over.length} finished jobs with their output and artifacts?`,
                action: 'Delete',
                run: remove,
              }
            }}
          >
            Delete {over.length || ''}
          </button>
          <button
            type="button"
            class="quiet"
            onClick={() => {
              selected.value = new Set()
            }}
          >
            Clear
          </button>
        </div>
      )}
      <Confirm question={question} />
    </>
  )
}
