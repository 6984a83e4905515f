import { AppError } from '../../jobs/errors.ts'
import type { Manifest } from '../../jobs/manifest.ts'
import { WORKSPACE } from '../../jobs/paths.ts'
import type { Blobs } from '../../ports.ts'
import { inputArchives } from '../../runner/input-archives.ts'
import { UNPACK } from '../../runner/own-machine.ts'
import type { GuestLink } from './guest-link.ts'
import { runInGuest } from './run-in-guest.ts'

export interface InputsRequest {
  readonly link: GuestLink
  readonly blobs: Blobs
  readonly manifest: Manifest
  readonly signal: AbortSignal
}

/** Puts the workspace and the files of a manifest into the VM. */
export const placeInputs = async (request: InputsRequest): Promise<void> => {
  for await (const archive of inputArchives(request.manifest, request.blobs)) await unpack(request, archive)
}

const unpack = async ({ link, signal }: InputsRequest, input: AsyncIterable<unknown>): Promise<void> => {
  const argv = ['/bin/sh', '-c', UNPACK, 'sh', WORKSPACE]
  const { code, stderr } = await runInGuest(link, { argv, input, signal })
  if (code === 0) return
  const said = stderr.trim().split('\n').at(-1) || `tar ended with status ${code}`
  throw /no space left/i.test(said)
    ? new AppError('too_large', `The inputs do not fit into the VM: ${said}.`, {
        hint: "Raise resources.disk and resources.memory in the manifest: its files are in the VM's memory.",
      })
    : new AppError('unavailable', `Cannot fill the workspace of the VM: ${said}.`)
}
