import { selectArtifacts } from '../files/select-artifacts.ts'
import type { Artifact, BlobRef, SkippedArtifact } from '../jobs/job.ts'
import type { Manifest } from '../jobs/manifest.ts'
import type { Blobs } from '../ports.ts'
import type { Channel } from './channel.ts'
import { listFiles } from './file-list.ts'
import type { KeepLimits } from './keep-limits.ts'
import { fetchPatch } from './patch.ts'
import { readFiles } from './read-files.ts'

export interface CollectRequest {
  channel: Channel
  workspace: string
  blobs: Blobs
  jobId: string
  manifest: Manifest
  keep: KeepLimits
  signal: AbortSignal
}

export interface Collected {
  artifacts: Artifact[]
  skippedArtifacts: SkippedArtifact[]
  patch: BlobRef | null
}

/** Whether a job leaves anything besides its output. */
export const leavesFiles = ({ artifacts = [], workspace }: Manifest): boolean =>
  artifacts.length > 0 || workspace?.patch === true

/** The result when nothing was, or nothing could be, collected. */
export const nothingCollected = (reason?: string): Collected => ({
  artifacts: [],
  skippedArtifacts: reason === undefined ? [] : [{ path: '.', reason }],
  patch: null,
})

/** Brings back the artifacts and the patch of a job. */
export const collect = async (request: CollectRequest): Promise<Collected> => {
  const { manifest, keep } = request
  const listing = await listFiles(request)
  const caps = { files: keep.artifactFiles, bytes: keep.artifactBytes }
  const selection = selectArtifacts(listing, manifest.artifacts ?? [], caps)
  const fetched = await fetchArtifacts(request, selection.wanted)
  const patch =
    manifest.workspace?.patch === true ? await fetchPatch(request, listing) : { ref: null, skipped: [] }
  return {
    artifacts: fetched.artifacts,
    skippedArtifacts: [...selection.skipped, ...fetched.skipped, ...patch.skipped],
    patch: patch.ref,
  }
}

/** The stream is not trusted: only names that were asked for, only once, only files, never more than announced. */
const fetchArtifacts = async (
  request: CollectRequest,
  wanted: readonly { path: string; size: number }[],
): Promise<{ artifacts: Artifact[]; skipped: SkippedArtifact[] }> => {
  const artifacts: Artifact[] = []
  const skipped: SkippedArtifact[] = []
  const expected = new Map(wanted.map(file => [file.path, file]))
  await readFiles({ ...request, paths: [...expected.keys()] }, async (path, entry) => {
    const file = expected.get(path)
    expected.delete(path)
    if (!file) return
    if (entry.type !== 'file') skipped.push({ path, reason: 'it is no file any more' })
    else if (entry.size > file.size) skipped.push({ path, reason: 'it grew while it was collected' })
    else artifacts.push({ path, ...(await request.blobs.put(entry.content, file.size, request.jobId)) })
  })
  for (const path of expected.keys()) skipped.push({ path, reason: 'it could not be read in the workspace' })
  return { artifacts: artifacts.sort((a, b) => (a.path < b.path ? -1 : 1)), skipped }
}
