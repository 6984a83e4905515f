import { deputy } from '../deputy.ts'
import { pathOf } from '../job/resource-curves.ts'
import { Problem } from '../parts.tsx'
import { useFetch } from '../use-fetch.ts'

const EVERY_MS = 10_000
const WIDTH = 200
const HEIGHT = 24

/** This computer and the user's nodes, with their load. */
export const Nodes = () => {
  const { data, problem, reload } = useFetch(deputy.clusterStatus, [], EVERY_MS)
  // Without the cluster tools there is no such route.
  if (data.value === undefined) return null
  return (
    <section class="card">
      <div class="bar">
        <h2>Computers</h2>
        <button type="button" class="quiet" onClick={() => void reload()}>
          Check now
        </button>
      </div>
      <Problem error={problem.value} />
      <div class="nodes">
        {Object.entries(data.value.nodes).map(([name, node]) => (
          <div class="node" key={name}>
            <p class="bar">
              <strong>{name}</strong>
              <span class={`health ${node.status}`}>{String(node.status)}</span>
            </p>
            {typeof node.reason === 'string' && <p class="soft">{node.reason}</p>}
            <p class="soft">{describe(node)}</p>
            <Meter name="CPU" value={node.cpu_percent} />
            <Sparkline values={node.cpu_history} />
            <Meter name="Memory" value={node.memory_percent} />
            <Meter name="Disk" value={node.disk_percent} />
          </div>
        ))}
      </div>
    </section>
  )
}

/** `linux arm64, 8 cores, 2 running, docker gpu` */
const describe = (node: Readonly<Record<string, unknown>>): string => {
  const { os, arch, cores, running_tasks: running, capabilities } = node
  return [
    typeof os === 'string' && `${os} ${arch}`,
    typeof cores === 'number' && `${cores} cores`,
    typeof running === 'number' && running > 0 && `${running} running`,
    Array.isArray(capabilities) && capabilities.join(' '),
  ]
    .filter(Boolean)
    .join(', ')
}

/** The CPU load at the last calls, from the left. */
const Sparkline = ({ values }: { values: unknown }) => {
  if (!Array.isArray(values) || values.length < 2) return null
  const points = values.map((value, index) => ({ seconds: index, value: Number(value) }))
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <path d={pathOf(points, 100, WIDTH, HEIGHT)} />
    </svg>
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
