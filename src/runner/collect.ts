import type { Listing } from '../files/file-listing.ts'
import type { PatchTasks } from '../files/patch-tasks.ts'
import { patchThread } from '../files/patch-thread.ts'
import { type Selection, selectArtifacts } from '../files/select-artifacts.ts'
import { globMatcher } from '../jobs/artifact-globs.ts'
import type { Artifact, BlobRef, SkippedArtifact } from '../jobs/job.ts'
import { type CollectedBlobs, createFileReceiver } from './file-receiver.ts'
import type { KeepLimits } from './keep-limits.ts'
import { type CollectedParts, type FetchedPatch, fetchPatch, noPatch } from './patch.ts'
import type { WorkspaceSource } from './workspace-source.ts'

export interface CollectionOptions {
  readonly blobs: CollectedBlobs
  readonly jobId: string
  readonly manifest: CollectedParts
  readonly keep: Pick<KeepLimits, 'artifactFiles' | 'artifactBytes' | 'patchBytes'>
  /** When the command started, in milliseconds. */
  startedAt(): number
  /** How much to ask for at once. */
  readonly batchBytes?: number
  readonly tasks?: PatchTasks
}

export interface Collected {
  readonly artifacts: readonly Artifact[]
  readonly skippedArtifacts: readonly SkippedArtifact[]
  readonly patch: BlobRef | null
}

/** Memory for the .gitignore files of a workspace. */
const IGNORE_BYTES = 16 * 1024 * 1024
const MAX_SKIPPED = 100

/** Whether a job leaves anything besides its output. */
export const leavesFiles = ({ artifacts = [], workspace }: CollectedParts): boolean =>
  artifacts.length > 0 || workspace?.patch === true

/**
 * Brings back the artifacts and the patch of a job. After a lost connection `fetch` is called again; files that were
 * received are not requested again.
 */
export const createCollection = (options: CollectionOptions) => {
  const { manifest, keep, tasks = patchThread } = options
  const wantsPatch = manifest.workspace?.patch === true
  const receiver = createFileReceiver({
    blobs: options.blobs,
    jobId: options.jobId,
    memoryBytes: IGNORE_BYTES + 2 * keep.patchBytes,
    storeBytes: keep.artifactBytes,
    batchBytes: options.batchBytes ?? Number.POSITIVE_INFINITY,
  })
  let listing: Listing | undefined
  let selection: Selection = { wanted: [], skipped: [] }
  let patch: FetchedPatch | undefined

  return {
    async fetch(source: WorkspaceSource): Promise<void> {
      listing = await source.list(globMatcher(manifest.artifacts ?? []).matches)
      const caps = { files: keep.artifactFiles, bytes: keep.artifactBytes }
      selection = selectArtifacts(listing, manifest.artifacts ?? [], caps)
      await receiver.fetch(source, selection.wanted, () => ({ into: 'store' }))
      if (wantsPatch)
        patch ??= await fetchPatch({
          ...options,
          source,
          receiver,
          listing,
          tasks,
          startedAt: options.startedAt(),
        })
    },

    /** Returns the files that have arrived so far, and the reasons why others are missing. */
    result(problem = 'the machine did not list its files'): Collected {
      if (!leavesFiles(manifest)) return { artifacts: [], skippedArtifacts: [], patch: null }
      if (listing === undefined)
        return { artifacts: [], skippedArtifacts: [{ path: '.', reason: problem }], patch: null }
      const artifacts: Artifact[] = []
      const skipped: SkippedArtifact[] = [...selection.skipped]
      for (const { path } of selection.wanted) {
        const file = receiver.received.get(path)
        if (file) artifacts.push({ path, sha256: file.sha256, size: file.size })
        else skipped.push({ path, reason: receiver.refused.get(path) ?? 'it did not arrive' })
      }
      const made = patch ?? (wantsPatch ? noPatch('the changed files did not arrive') : undefined)
      return {
        artifacts,
        skippedArtifacts: [...skipped, ...(made?.skipped ?? [])].slice(0, MAX_SKIPPED),
        patch: made?.ref ?? null,
      }
    },
  }
}

export type Collection = ReturnType<typeof createCollection>
