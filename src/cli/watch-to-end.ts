import type { Client } from '../client/daemon-client.ts'
import type { JobView } from '../engine/deputy.ts'
import { visible } from '../jobs/visible-text.ts'
import type { Context } from './context.ts'
import { explainEnd } from './explain-end.ts'
import type { LooseManifest } from './manifest/from-input.ts'

interface WatchFlags {
  readonly raw: boolean
  readonly quiet: boolean
  readonly json: boolean
}

/** Follows a submitted job to its end and prints its output, or its result as JSON. */
export const watchToEnd = async (
  context: Context,
  { client, manifest, job }: { client: Client; manifest: LooseManifest; job: JobView },
  flags: WatchFlags,
): Promise<JobView> => {
  const { watchJob } = await import('./watch-job.ts')
  const quiet = flags.quiet || flags.json
  const last = await watchJob(context, client, job, { raw: flags.raw, quiet, mute: flags.json })
  if (flags.json) await context.printJson(await client.result(last.job_id))
  else await explainEnd(context, last)
  if (!quiet) await warnAboutArtifacts(context, client, { job: last, manifest })
  return last
}

/** Names the artifacts that did not come back. A job whose command did not end has explained itself. */
const warnAboutArtifacts = async (
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
