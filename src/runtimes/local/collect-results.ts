import { globMatcher } from '../../jobs/artifact-globs.ts'
import { toAppError } from '../../jobs/errors.ts'
import { readListing } from './file-listing.ts'
import type { Box } from './local-machine.ts'
import type { MadePatch, PatchOptions } from './make-patch.ts'
import { listText } from './runner-script.ts'
import { selectArtifacts } from './select-artifacts.ts'
import type { ShimExit, StartSpec } from './shim-protocol.ts'

export type Gathered = Pick<ShimExit, 'artifacts' | 'skippedArtifacts' | 'patch'>

export interface GatherOptions {
  readonly box: Box
  readonly spec: StartSpec
  readonly startedAt: number
  readonly signal: AbortSignal
}

/** Everything a job leaves besides its output. A failure here never changes how the job ended. */
export const gather = async ({ box, spec, startedAt, signal }: GatherOptions): Promise<Gathered> => {
  if (spec.artifacts.length === 0 && !spec.wantsPatch)
    return { artifacts: [], skippedArtifacts: [], patch: null }
  try {
    box.send(listText(box.plan.directory))
    const listing = await readListing(box.dataOut, signal, globMatcher(spec.artifacts).matches)
    const caps = { files: spec.keep.artifactFiles, bytes: spec.keep.artifactBytes }
    const selection = selectArtifacts(listing, spec.artifacts, caps)
    // Loaded when needed: most jobs leave no files.
    const { collect } = await import('./collect-files.ts')
    const collected = await collect({
      box,
      wanted: selection.wanted,
      dir: spec.dir,
      into: 'artifacts',
      signal,
    })
    const made = spec.wantsPatch
      ? await makePatch({ box, spec, listing, startedAt, signal })
      : { patch: null, skipped: [] }
    return {
      artifacts: collected.files,
      skippedArtifacts: [...selection.skipped, ...collected.skipped, ...made.skipped],
      patch: made.patch,
    }
  } catch (error) {
    return {
      artifacts: [],
      skippedArtifacts: [{ path: '.', reason: toAppError(error).message }],
      patch: null,
    }
  }
}

/** Artifacts that have come stay, whatever becomes of the patch. */
const makePatch = async (options: PatchOptions): Promise<MadePatch> => {
  const patch = await import('./make-patch.ts')
  return patch.makePatch(options).catch(error => ({
    patch: null,
    skipped: [{ path: '.', reason: `no patch: ${toAppError(error).message}` }],
  }))
}
