import { resolve } from 'node:path'
import type { Client } from '../client/daemon-client.ts'
import type { JobView } from '../engine/deputy.ts'
import { WORKSPACE_LABEL } from '../jobs/labels.ts'
import type { Parsed } from './args/spec.ts'
import type { MANIFEST_FLAGS } from './commands/job-flags.ts'
import type { Context } from './context.ts'
import { type LooseManifest, manifestFromInput } from './manifest/from-input.ts'
import { resolveJobId, resolveMachineId } from './resolve-id.ts'

type Input = Pick<Parsed<typeof MANIFEST_FLAGS>, 'flags' | 'args' | 'rest'>

interface Options {
  readonly command: string
  readonly patch?: boolean
}

/** Builds the manifest, uploads the workspace and submits the job. */
export const submitFromInput = async (
  context: Context,
  input: Input,
  options: Options,
): Promise<{ client: Client; manifest: LooseManifest; job: JobView }> => {
  const { client, manifest } = await prepareJob(context, input, options)
  return { client, manifest, job: await client.submit(manifest) }
}

/** Builds the manifest and uploads the workspace. */
export const prepareJob = async (
  context: Context,
  input: Input,
  options: Options,
): Promise<{ client: Client; manifest: LooseManifest }> => {
  // Validate everything local before starting a daemon.
  const manifest = await manifestFromInput(input, { command: options.command, env: context.env })
  const client = await context.client()
  if (input.flags.machine !== undefined)
    manifest.machine = await resolveMachineId(client, input.flags.machine)
  if (input.flags.needs.length > 0)
    manifest.needs = await Promise.all(input.flags.needs.map(id => resolveJobId(client, id)))
  if (input.flags.workspace !== undefined) {
    const { uploadWorkspace } = await import('./workspace/upload.ts')
    const blob = await uploadWorkspace(context, client, input.flags.workspace, { quiet: input.flags.json })
    const given = typeof manifest.workspace === 'object' ? manifest.workspace : {}
    manifest.workspace = { ...given, blob, ...(options.patch && { patch: true }) }
    // The daemon sees only the bytes. The path lets it send a node only the files that changed.
    const from = resolve(input.flags.workspace).slice(0, 256)
    manifest.labels = { [WORKSPACE_LABEL]: from, ...(typeof manifest.labels === 'object' && manifest.labels) }
  }
  return { client, manifest }
}
