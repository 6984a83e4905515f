import { useSignal } from '@preact/signals'
import type { MachineView } from '../../src/engine/deputy.ts'
import { deputy } from '../deputy.ts'
import { Nodes } from '../overview/nodes.tsx'
import { Age, Command, Confirm, Problem, type Question } from '../parts.tsx'
import { logOut } from '../session.ts'
import { type Fetched, useFetch } from '../use-fetch.ts'
import { Daemons } from './daemons.tsx'
import { ProxmoxCluster } from './proxmox.tsx'
import { Settings } from './settings.tsx'

export const SystemPage = () => {
  const daemon = useFetch(signal => deputy.daemon(undefined, signal))
  const machines = useFetch(deputy.machines, [], 5_000)
  return (
    <section class="system">
      <div class="bar">
        <h1>System</h1>
        <button type="button" class="quiet" onClick={logOut}>
          Log out
        </button>
      </div>
      <Problem error={daemon.problem.value} />
      {daemon.data.value !== undefined && (
        <p class="soft">
          Deputy {daemon.data.value.version}, process {daemon.data.value.pid}, started{' '}
          <Age at={daemon.data.value.started_at} />
        </p>
      )}
      <Checks />
      <Machines list={machines} />
      <Nodes />
      <Daemons />
      <ProxmoxCluster machines={machines.data.value ?? []} />
      <Settings />
    </section>
  )
}

const Checks = () => {
  const { data, problem } = useFetch(deputy.doctor)
  return (
    <section class="card">
      <h2>Runtimes</h2>
      <Problem error={problem.value} />
      {data.value === undefined && problem.value === undefined && <p class="soft">Checking…</p>}
      {data.value?.map(({ runtime, ready, checks }) => (
        <details key={runtime} open={ready}>
          <summary>
            <strong>{runtime}</strong>{' '}
            <span class={`health ${ready ? 'healthy' : 'unreachable'}`}>{ready ? 'ready' : 'not ready'}</span>
          </summary>
          <ul class="checks">
            {checks.map(({ name, status, message, fix }) => (
              <li class={status} key={name}>
                <strong>{name}</strong> {message}
                {fix !== undefined && <Command text={fix} />}
              </li>
            ))}
          </ul>
        </details>
      ))}
    </section>
  )
}

const Machines = ({ list: { data, problem, reload } }: { list: Fetched<readonly MachineView[]> }) => {
  const question = useSignal<Question | undefined>(undefined)
  const failure = useSignal<unknown>(undefined)
  const destroy = async (id: string): Promise<void> => {
    try {
      await deputy.destroyMachine(id)
      await reload()
    } catch (error) {
      failure.value = error
    }
  }
  return (
    <section class="card">
      <h2>Machines</h2>
      <Problem error={problem.value ?? failure.value} />
      {data.value?.length === 0 && (
        <p class="soft">None. A machine lives as long as its job, or longer with lifecycle: persistent.</p>
      )}
      {data.value?.map(machine => (
        <div class="machine" key={machine.machine_id}>
          <code>{machine.machine_id.slice(0, 8)}</code>
          <span>
            {machine.runtime}
            {machine.where !== undefined && ` on ${machine.where}`}, {machine.state},{' '}
            <Age at={machine.created_at} />
            {machine.job_id !== null && (
              <>
                , <a href={`#/jobs/${machine.job_id}`}>job {machine.job_id.slice(0, 8)}</a>
              </>
            )}
            {machine.problem !== null && <span class="field-problem"> {machine.problem}</span>}
          </span>
          <span class="bar end">
            {hasTerminal(machine) && (
              <a class="button" href={`#/terminal/${machine.machine_id}`}>
                Terminal
              </a>
            )}
            <button
              type="button"
              class="danger"
              onClick={() => {
                question.value = {
                  text: `Destroy the machine ${machine.machine_id}? What runs in it ends.`,
                  action: 'Destroy',
                  run: () => destroy(machine.machine_id),
                }
              }}
            >
              Destroy
            </button>
          </span>
        </div>
      ))}
      <Confirm question={question} />
    </section>
  )
}

/** Nothing connects to a VM of Proxmox, and a machine without a job is being made, pooled or destroyed. */
const hasTerminal = ({ runtime, state }: MachineView): boolean =>
  runtime !== 'proxmox' && (state === 'busy' || state === 'kept')
