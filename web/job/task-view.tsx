import { Source } from '../code.tsx'
import { deputy } from '../deputy.ts'
import { Copy, Problem } from '../parts.tsx'
import { useFetch } from '../use-fetch.ts'

export const TaskView = ({ id }: { id: string }) => {
  const { data, problem } = useFetch(signal => deputy.manifest(id, signal), [id])
  if (data.value === undefined) return <Problem error={problem.value} />
  const { task, ...rest } = data.value
  const manifest = JSON.stringify(rest, null, 2)
  return (
    <section aria-label="Task">
      <div class="bar">
        <h2>Task</h2>
        <Copy text={task} />
      </div>
      <Source text={task} language={rest.agentType === 'script' ? 'shell' : 'plain'} />
      <div class="bar">
        <h2>Manifest</h2>
        <Copy text={JSON.stringify(data.value, null, 2)} />
      </div>
      <Source text={manifest} language="data" />
    </section>
  )
}
