import { AppError } from '../../jobs/errors.ts'
import type { Manifest } from '../../jobs/manifest.ts'
import { WORKSPACE } from '../../jobs/paths.ts'
import type { Blobs } from '../../ports.ts'
import { inputArchives } from '../../runner/input-archives.ts'
import { UNPACK } from '../../runner/own-machine.ts'
import type { EngineClient } from './engine-client.ts'
import { execInContainer } from './exec-session.ts'

export interface InputsRequest {
  readonly client: EngineClient
  readonly container: string
  readonly blobs: Blobs
  readonly manifest: Manifest
  readonly signal: AbortSignal
}

/** Puts the workspace and the files of a manifest into the container. */
export const placeInputs = async (request: InputsRequest): Promise<void> => {
  for await (const archive of inputArchives(request.manifest, request.blobs)) await unpack(request, archive)
}

const unpack = async (
  { client, container, signal }: InputsRequest,
  input: AsyncIterable<unknown>,
): Promise<void> => {
  const argv = ['sh', '-c', UNPACK, 'sh', WORKSPACE]
  const { code, stderr } = await execInContainer(client, { container, argv, input, signal })
  if (code !== 0) throw unpackFailed(container, stderr)
}

const unpackFailed = (container: string, stderr: string): AppError => {
  const said = stderr.trim().split('\n').at(-1) || 'the engine cut the connection'
  return /no space left/i.test(said)
    ? new AppError('too_large', `The inputs do not fit into the container: ${said}.`, {
        hint: "Raise resources.disk in the manifest, such as 'disk: 4G'.",
      })
    : new AppError('unavailable', `Cannot fill the workspace of ${container}: ${said}.`)
}
