import { useSignal } from '@preact/signals'
import type { ApprovalView } from '../../src/client/daemon-calls.ts'
import type { MachineView } from '../../src/engine/deputy.ts'
import type { Readiness } from '../../src/ports.ts'
import { ask } from '../api.ts'
import { formatTime } from '../format.ts'
import { Confirm, Problem, type Question } from '../parts.tsx'
import { useFetch } from '../use-fetch.ts'

const EVERY_MS = 10_000

/** What does not go on without a person: calls to approve, machines that could not be removed, no runtime. */
export const NeedsYou = () => {
  const approvals = useFetch<{ readonly approvals: readonly ApprovalView[] }>(
    '/api/proxmox/approvals',
    EVERY_MS,
  )
  const machines = useFetch<{ readonly machines: readonly MachineView[] }>('/api/machines', EVERY_MS)
  const doctor = useFetch<{ readonly ready: boolean; readonly runtimes: readonly Readiness[] }>('/api/doctor')
  const question = useSignal<Question | undefined>(undefined)
  const problem = useSignal<unknown>(undefined)
  // Without Proxmox there is nothing to approve, and no such route.
  const waiting = approvals.data.value?.approvals.filter(plan => !plan.approved) ?? []
  const stuck = machines.data.value?.machines.filter(machine => machine.problem !== null) ?? []
  const isUnready = doctor.data.value?.ready === false
  if (waiting.length + stuck.length === 0 && !isUnready) return null

  const decide = async (id: string, method: 'POST' | 'DELETE'): Promise<void> => {
    try {
      await ask(`/api/proxmox/approvals/${encodeURIComponent(id)}`, { method })
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
                  run: () => decide(plan.id, 'POST'),
                }
              }}
            >
              Approve…
            </button>
            <button type="button" class="danger" onClick={() => void decide(plan.id, 'DELETE')}>
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
