import { useSignal } from '@preact/signals'
import type { ReviewAnswer, ReviewDecision } from '../../src/client/review-calls.ts'
import type { JobView } from '../../src/engine/deputy.ts'
import { deputy } from '../deputy.ts'
import { Age, Command, Confirm, Problem, type Question } from '../parts.tsx'

interface Props {
  readonly job: JobView
  readonly review: ReviewAnswer
  readonly fileCount: number
  onChange(review: ReviewAnswer): void
}

/** Says yes or no to the changes, or asks the agent for others. */
export const DecisionForm = ({ job, review, fileCount, onChange }: Props) => {
  const comment = useSignal('')
  const question = useSignal<Question | undefined>(undefined)
  const problem = useSignal<unknown>(undefined)
  const isBusy = useSignal(false)
  const { job_id: id } = job
  const { directory, may_apply: mayApply, decision } = review
  const isAgent = job.agent !== 'script'
  const said = comment.value.trim()

  const decide = async (next: ReviewDecision): Promise<void> => {
    isBusy.value = true
    try {
      problem.value = undefined
      onChange(await deputy.decide(id, next))
      comment.value = ''
    } catch (error) {
      problem.value = error
    } finally {
      isBusy.value = false
    }
  }
  const apply = (): void => {
    question.value = {
      text: `Write ${fileCount === 1 ? 'the changed file' : `${fileCount} changed files`} into ${directory}?`,
      action: 'Apply',
      run: () => decide({ action: 'apply' }),
    }
  }

  return (
    <section class="card decision" aria-label="Decision">
      {decision !== null && <Verdict decision={decision} />}
      <Problem error={problem.value} />
      {decision?.verdict !== 'applied' && (
        <>
          <textarea
            aria-label="Comment"
            rows={2}
            placeholder={isAgent ? 'What should the agent change?' : 'Why, for the record'}
            value={comment.value}
            onInput={event => {
              comment.value = event.currentTarget.value
            }}
          />
          <div class="bar">
            {directory !== null && mayApply ? (
              <button type="button" class="primary" disabled={isBusy.value} onClick={apply}>
                Approve and apply
              </button>
            ) : (
              <Command text={`deputy patch --apply ${directory ?? '.'} ${id}`} />
            )}
            {isAgent && (
              <button
                type="button"
                disabled={isBusy.value || said === ''}
                onClick={() => void decide({ action: 'hand_back', comment: said })}
              >
                Request changes
              </button>
            )}
            <button
              type="button"
              class="danger"
              disabled={isBusy.value}
              onClick={() => void decide({ action: 'reject', ...(said !== '' && { comment: said }) })}
            >
              Reject
            </button>
            {!isAgent && <a href={`#/new?from=${id}`}>Edit and run</a>}
          </div>
        </>
      )}
      <Confirm question={question} />
    </section>
  )
}

const VERDICTS = { applied: 'Applied', rejected: 'Rejected', handed_back: 'Changes requested' } as const

const Verdict = ({ decision }: { decision: NonNullable<ReviewAnswer['decision']> }) => (
  <p class={`verdict ${decision.verdict}`}>
    <strong>{VERDICTS[decision.verdict]}</strong>
    {decision.directory !== null && (
      <>
        {' '}
        to <code>{decision.directory}</code>
      </>
    )}
    {decision.follow_up !== null && (
      <>
        : <a href={`#/jobs/${decision.follow_up}`}>the follow-up job</a>
      </>
    )}{' '}
    <span class="soft">
      by {decision.by}, <Age at={decision.at} />
    </span>
    {decision.comment !== null && <q>{decision.comment}</q>}
  </p>
)
