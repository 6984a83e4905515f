import type { MachineView } from '../../src/engine/deputy.ts'
import type { GuestOverview } from '../../src/proxmox/cluster-overview.ts'
import { deputy } from '../deputy.ts'
import { formatSize } from '../format.ts'
import { Problem } from '../parts.tsx'
import { useFetch } from '../use-fetch.ts'

const REFRESH_MS = 10_000

/** The nodes and guests of the cluster. Nothing without one. */
export const ProxmoxCluster = ({ machines }: { machines: readonly MachineView[] }) => {
  const { data, problem } = useFetch(deputy.proxmox, [], REFRESH_MS)
  const { configured = false, nodes = [], guests = [] } = data.value ?? {}
  if (!configured && problem.value === undefined) return null
  return (
    <section class="card">
      <h2>Proxmox VE</h2>
      <Problem error={problem.value} />
      <div class="scroll">
        <table class="guests">
          <thead>
            <tr>
              <th>Name</th>
              <th>State</th>
              <th>CPU</th>
              <th>Memory</th>
              <th>Job</th>
            </tr>
          </thead>
          {nodes.map(node => (
            <tbody key={node.name}>
              <tr>
                <th scope="rowgroup">{node.name}</th>
                <td class={node.online ? 'health healthy' : 'health unreachable'}>
                  {node.online ? 'online' : 'offline'}
                </td>
                <Load {...node} />
                <td />
              </tr>
              {guests
                .filter(guest => guest.node === node.name)
                .map(guest => (
                  <tr key={guest.vmid}>
                    <td>
                      <code>{guest.vmid}</code> {guest.name}
                    </td>
                    <td>{guest.template ? 'template' : guest.status}</td>
                    <Load {...guest} />
                    <td>
                      <JobOf guest={guest} machines={machines} />
                    </td>
                  </tr>
                ))}
            </tbody>
          ))}
        </table>
      </div>
    </section>
  )
}

const Load = ({ cpu, memory, memory_limit }: Pick<GuestOverview, 'cpu' | 'memory' | 'memory_limit'>) => (
  <>
    <td>{cpu !== null && `${Math.round(cpu * 100)} %`}</td>
    <td>
      {memory !== null && `${formatSize(memory)} of `}
      {memory_limit !== null && formatSize(memory_limit)}
    </td>
  </>
)

/** The VM of a job has the id of its machine in its name. */
const JobOf = ({ guest, machines }: { guest: GuestOverview; machines: readonly MachineView[] }) => {
  const machine = machines.find(({ machine_id }) => guest.name === `deputy-${machine_id}`)
  if (machine?.job_id == null) return null
  return <a href={`#/jobs/${machine.job_id}`}>{machine.job_id.slice(0, 8)}</a>
}
