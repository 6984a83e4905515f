import { deputy } from '../deputy.ts'
import { useFetch } from '../use-fetch.ts'

const EVERY_MS = 10_000

/** This computer and the user's nodes, with their load. */
export const Nodes = () => {
  const { data } = useFetch(deputy.clusterStatus, [], EVERY_MS)
  if (data.value === undefined) return null
  return (
    <section class="card">
      <h2>Computers</h2>
      <div class="nodes">
        {Object.entries(data.value.nodes).map(([name, node]) => (
          <div class="node" key={name}>
            <p class="bar">
              <strong>{name}</strong>
              <span class={`health ${node.status}`}>{String(node.status)}</span>
            </p>
            {typeof node.reason === 'string' && <p class="soft">{node.reason}</p>}
            <Meter name="CPU" value={node.cpu_percent} />
            <Meter name="Memory" value={node.memory_percent} />
            <Meter name="Disk" value={node.disk_percent} />
          </div>
        ))}
      </div>
    </section>
  )
}

const Meter = ({ name, value }: { name: string; value: unknown }) =>
  typeof value === 'number' ? (
    <p class="meter">
      <span>{name}</span>
      <meter min={0} max={100} high={90} value={value} aria-label={name} />
      <span>{Math.round(value)} %</span>
    </p>
  ) : null
