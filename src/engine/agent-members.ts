import { INDEX_LABEL } from '../jobs/labels.ts'
import { LIMITS } from '../jobs/limits.ts'
import type { Manifest } from '../jobs/manifest.ts'

/** The manifest of one agent of a batch that gives the same task to several. */
export const memberManifest = (
  { agents: _agents, needs: _needs, idempotency_key: _key, ...member }: Manifest,
  index: number,
): Manifest => {
  // The workspace of the batch has the files of needed jobs already.
  const labels = { ...member.labels, [INDEX_LABEL]: String(index) }
  return { ...member, ...(Object.keys(labels).length <= LIMITS.labels && { labels }) }
}

/** The members may run one after the other, each with the whole timeout. */
export const batchTimeout = (timeoutSeconds: number, members: number): number =>
  Math.min(LIMITS.timeoutSeconds, timeoutSeconds * members + 60)
