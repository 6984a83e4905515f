import type { Client } from '../client/daemon-client.ts'
import type { JobView } from '../engine/deputy.ts'
import { visible } from '../jobs/visible-text.ts'
import type { Context } from './context.ts'
import type { LooseManifest } from './manifest/from-input.ts'

/** Names the artifacts that did not come back. A job whose command did not end has explained itself. */
export const warnAboutArtifacts = async (
  context: Context,
  client: Client,
  { job, manifest }: { job: JobView; manifest: LooseManifest },
): Promise<void> => {
  if (manifest.artifacts === undefined || job.exit_code === null) return
  const result = await client.result(job.job_id, { maxBytes: 0 })
  const lines = [
    ...(result.unmatched_artifacts ?? []).map(glob => `no file matched the artifact '${visible(glob)}'`),
    ...result.skipped_artifacts.map(
      ({ path, reason }) => `no artifact '${visible(path)}': ${visible(reason)}`,
    ),
  ]
  const { yellow } = context.errColors
  await context.err.write(lines.map(line => `${yellow('warning:')} ${line}\n`).join(''))
}
