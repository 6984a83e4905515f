import { BATCH, batchCommand, parseBatch } from '../jobs/batch-command.ts'
import { INDEX_LABEL } from '../jobs/labels.ts'
import type { ManifestInput } from '../jobs/manifest.ts'
import { planRouted, type Routing } from './plan-routed.ts'

/** The job of a whole batch: the engine submits one child job per command and waits for all of them. */
export const batchManifest = (batch: {
  commands: readonly string[]
  requires: NonNullable<ManifestInput['requires']>
  timeout: number
  cwd?: string | undefined
}): ManifestInput => ({
  task: `${batch.commands.length} commands in parallel: ${batch.commands.slice(0, 3).join(' | ').slice(0, 200)}`,
  agentType: 'custom',
  agent: { command: batchCommand(batch) },
  runtime: BATCH,
  network: 'full',
  requires: batch.requires,
  // The timeout applies to each child, and children may run one after the other.
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
