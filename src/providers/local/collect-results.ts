import { readListing } from '../../files/file-listing.ts'
import { selectArtifacts } from '../../files/select-artifacts.ts'
import { globMatcher } from '../../jobs/artifact-globs.ts'
import { toAppError } from '../../jobs/errors.ts'
import type { RunExit } from '../../runner/run-result.ts'
import type { LocalMachine } from './local-machine.ts'
import type { MakePatchOptions, PatchResult } from './make-patch.ts'
import type { RunSpec } from './run-spec.ts'
import { listScript } from './runner-script.ts'

export type CollectedResults = Pick<RunExit, 'artifacts' | 'skippedArtifacts' | 'patch'>

export interface CollectResultsOptions {
  readonly machine: LocalMachine
  readonly spec: RunSpec
  readonly startedAt: number
  readonly signal: AbortSignal
}

/** Collects artifacts and the patch of a job. A failure here does not change the exit status. */
export const collectResults = async ({
  machine,
  spec,
  startedAt,
  signal,
}: CollectResultsOptions): Promise<CollectedResults> => {
  if (spec.artifacts.length === 0 && !spec.wantsPatch)
    return { artifacts: [], skippedArtifacts: [], patch: null }
  try {
    machine.send(listScript(machine.plan.directory))
    const listing = await readListing(machine.dataOut, signal, globMatcher(spec.artifacts).matches)
    const caps = { files: spec.keep.artifactFiles, bytes: spec.keep.artifactBytes }
    const selection = selectArtifacts(listing, spec.artifacts, caps)
    // Imported on demand: most jobs leave no files.
    const { collectFiles } = await import('./collect-files.ts')
    const collected = await collectFiles({
      machine,
      wanted: selection.wanted,
      dir: spec.dir,
      into: 'artifacts',
      signal,
    })
    const patched = spec.wantsPatch
      ? await tryMakePatch({ machine, spec, listing, startedAt, signal })
      : { patch: null, skipped: [] }
    return {
      artifacts: collected.files,
      skippedArtifacts: [...selection.skipped, ...collected.skipped, ...patched.skipped],
      patch: patched.patch,
    }
  } catch (error) {
    return {
      artifacts: [],
      skippedArtifacts: [{ path: '.', reason: toAppError(error).message }],
      patch: null,
    }
  }
}

/** Keeps the collected artifacts when the patch fails. */
const tryMakePatch = async (options: MakePatchOptions): Promise<PatchResult> => {
  const patch = await import('./make-patch.ts')
  return patch.makePatch(options).catch(error => ({
    patch: null,
    skipped: [{ path: '.', reason: `no patch: ${toAppError(error).message}` }],
  }))
}
