import { useSignal } from '@preact/signals'
import { deputy } from '../deputy.ts'
import { formatTime } from '../format.ts'
import { Confirm, Problem, type Question } from '../parts.tsx'
import { useFetch } from '../use-fetch.ts'

const EVERY_MS = 10_000

/** What does not go on without a person: calls to approve, machines that could not be removed, no runtime. */
export const NeedsYou = () => {
  const approvals = useFetch(deputy.approvals, [], EVERY_MS)
  const machines = useFetch(deputy.machines, [], EVERY_MS)
  const doctor = useFetch(deputy.doctor)
  const question = useSignal<Question | undefined>(undefined)
  const problem = useSignal<unknown>(undefined)
  // Without Proxmox there is nothing to approve, and no such route.
  const waiting = approvals.data.value?.filter(plan => !plan.approved) ?? []
  const stuck = machines.data.value?.filter(machine => machine.problem !== null) ?? []
  const isUnready = doctor.data.value?.some(({ ready }) => ready) === false
  if (waiting.length + stuck.length === 0 && !isUnready) return null

  const decide = async (decision: Promise<unknown>): Promise<void> => {
    try {
      await decision
      await approvals.reload()
    } catch (error) {
      problem.value = error
    }
  }
  return (
    <section class="card attention">
      <h2>Needs you</h2>
      <Problem error={problem.value} />
      {isUnready && (
        <p>
          No runtime takes jobs. <a href="#/system">See what is missing</a>
        </p>
      )}
      {waiting.map(plan => (
        <div class="approval" key={plan.id}>
          <p>
            <strong>{plan.who}</strong> wants to call <code>{plan.call}</code>
            {plan.guests.length > 0 && ` on ${plan.guests.join(', ')}`}
            <span class="soft"> until {formatTime(plan.expires_at)}</span>
          </p>
          <pre class="code">{JSON.stringify(plan.params, null, 2)}</pre>
          <div class="bar">
            <button
              type="button"
              class="primary"
              onClick={() => {
                question.value = {
                  text: `Allow ${plan.who} to call ${plan.call} once?`,
                  action: 'Approve',
                  run: () => decide(deputy.approve(plan.id)),
                }
              }}
            >
              Approve…
            </button>
            <button type="button" class="danger" onClick={() => void decide(deputy.refuse(plan.id))}>
              Refuse
            </button>
          </div>
        </div>
      ))}
      {stuck.map(machine => (
        <p key={machine.machine_id}>
          <a href="#/system">Machine {machine.machine_id.slice(0, 8)}</a> could not be removed:{' '}
          {machine.problem}
        </p>
      ))}
      <Confirm question={question} />
    </section>
  )
}
