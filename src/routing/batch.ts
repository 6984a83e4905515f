import { batchCommand, parseBatch } from '../jobs/batch.ts'
import { INDEX_LABEL } from '../jobs/labels.ts'
import type { ManifestInput } from '../jobs/manifest.ts'
import { planRouted, type Routing } from './plan.ts'

/** A batch is a job of its own: the batch runtime starts the children and stays until they have ended. */
export const batchManifest = (batch: {
  commands: readonly string[]
  requires: NonNullable<ManifestInput['requires']>
  timeout: number
  cwd?: string | undefined
}): ManifestInput => ({
  task: `${batch.commands.length} commands in parallel: ${batch.commands.slice(0, 3).join(' | ').slice(0, 200)}`,
  agentType: 'custom',
  agent: { command: batchCommand(batch) },
  runtime: 'batch',
  network: 'full',
  requires: batch.requires,
  // The children wait for each other; each has the time-out for itself.
  timeout: Math.min(86_400, batch.timeout * batch.commands.length + 60),
})

/** The job of one command of a batch. */
export const childManifest = async (
  routing: Routing,
  parent: ManifestInput,
  index: number,
): Promise<ManifestInput> => {
  const batch = parseBatch(parent.agent?.command)
  const { node: _, ...requires } = parent.requires ?? {}
  const { manifest } = await planRouted(
    {
      command: batch?.commands[index] ?? '',
      requires,
      autoRoute: true,
      spread: true,
      cwd: batch?.cwd,
      timeoutSeconds: batch?.timeout,
    },
    routing,
  )
  return { ...manifest, labels: { ...manifest.labels, [INDEX_LABEL]: String(index) } }
}
