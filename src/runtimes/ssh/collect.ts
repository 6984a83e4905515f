import { pipeline } from 'node:stream/promises'
import { extract } from 'tar-stream'
import type { Cluster } from '../../cluster/cluster.ts'
import type { SshTarget } from '../../cluster/ssh/arguments.ts'
import { listWorkspace, packFrom } from '../../cluster/sync/workspace.ts'
import type { Artifact, BlobRef, SkippedArtifact } from '../../jobs/job.ts'
import type { Manifest } from '../../jobs/manifest.ts'
import type { Blobs } from '../../ports.ts'
import { selectArtifacts } from '../local/select-artifacts.ts'
import type { KeepLimits } from '../local/shim-protocol.ts'
import { fetchPatch } from './patch.ts'

export interface CollectRequest {
  cluster: Cluster
  target: SshTarget
  blobs: Blobs
  jobId: string
  manifest: Manifest
  workspaceId: string
  keep: KeepLimits
  signal: AbortSignal
}

export interface Collected {
  artifacts: Artifact[]
  skippedArtifacts: SkippedArtifact[]
  patch: BlobRef | null
}

/** Whether there is anything to bring back besides output. */
export const leavesSomething = ({ artifacts = [], workspace }: Manifest): boolean =>
  artifacts.length > 0 || workspace?.patch === true

/** What is told when nothing was, or nothing could be, brought back. */
export const nothingLeft = (reason?: string): Collected => ({
  artifacts: [],
  skippedArtifacts: reason === undefined ? [] : [{ path: '.', reason }],
  patch: null,
})

/** Everything a job leaves besides its output. */
export const collect = async (request: CollectRequest): Promise<Collected> => {
  const globs = request.manifest.artifacts ?? []
  const { cluster, target, signal, keep } = request
  const where = { ssh: cluster.ssh, owner: cluster.owner, target, signal, id: request.workspaceId }
  const listing = await listWorkspace(where)
  const caps = { files: keep.artifactFiles, bytes: keep.artifactBytes }
  const selection = selectArtifacts(listing, globs, caps)
  const fetched = await fetchArtifacts(request, selection.wanted)
  const wantsPatch = request.manifest.workspace?.patch === true
  const patch = wantsPatch ? await fetchPatch(request, listing) : { ref: null, skipped: [] }
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
  await readFiles(request, undefined, [...expected.keys()], async (path, entry) => {
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

interface TarEntry {
  type: string
  size: number
  mode: number
  content: AsyncIterable<Uint8Array>
}

/** Files of the workspace, or of another directory of ours on the node, one after the other. */
export const readFiles = async (
  request: CollectRequest,
  directory: string | undefined,
  paths: readonly string[],
  onFile: (path: string, entry: TarEntry) => Promise<void>,
): Promise<void> => {
  if (paths.length === 0) return
  const { cluster, target, signal } = request
  const tar = extract()
  const source = packFrom({
    ssh: cluster.ssh,
    owner: cluster.owner,
    target,
    signal,
    id: request.workspaceId,
    files: paths,
    ...(directory !== undefined && { directory }),
  })
  const fed = pipeline(source, tar)
  // Whoever reads the entries hears of it, too.
  fed.catch(() => undefined)
  for await (const item of tar) {
    const { header } = item
    const path = header.name.replace(/^\.\//, '')
    await onFile(path, {
      type: header.type ?? 'file',
      size: header.size ?? 0,
      mode: header.mode ?? 0o644,
      content: bytes(item),
    })
    item.resume()
  }
  await fed
}

async function* bytes(stream: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream) yield chunk as Uint8Array
}
