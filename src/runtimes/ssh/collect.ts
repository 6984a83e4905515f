import { pipeline } from 'node:stream/promises'
import { extract } from 'tar-stream'
import type { Cluster } from '../../cluster/cluster.ts'
import type { SshTarget } from '../../cluster/ssh/arguments.ts'
import { type FileChange, type FileState, makePatch } from '../../cluster/sync/patch.ts'
import { baseDirectory, listWorkspace, packFrom, type WorkspaceFile } from '../../cluster/sync/workspace.ts'
import { toAppError } from '../../jobs/errors.ts'
import type { Artifact, BlobRef, SkippedArtifact } from '../../jobs/job.ts'
import type { Manifest } from '../../jobs/manifest.ts'
import type { Blobs } from '../../ports.ts'
import type { KeepLimits } from '../local/protocol.ts'
import { selectArtifacts } from '../local/select.ts'

export interface CollectRequest {
  cluster: Cluster
  target: SshTarget
  blobs: Blobs
  manifest: Manifest
  workspaceId: string
  hasWorkspace: boolean
  keep: KeepLimits
  signal: AbortSignal
}

export interface Collected {
  artifacts: Artifact[]
  skippedArtifacts: SkippedArtifact[]
  patch: BlobRef | null
}

/** Everything a job leaves besides its output. A failure here never changes how the job ended. */
export const collect = async (request: CollectRequest): Promise<Collected> => {
  const globs = request.manifest.artifacts ?? []
  const wantsPatch = request.manifest.workspace?.patch === true && request.hasWorkspace
  if (globs.length === 0 && !wantsPatch) return { artifacts: [], skippedArtifacts: [], patch: null }
  const { cluster, target, signal, keep } = request
  const where = { ssh: cluster.ssh, owner: cluster.owner, target, signal, id: request.workspaceId }
  try {
    const listing = await listWorkspace(where)
    const caps = { files: keep.artifactFiles, bytes: keep.artifactBytes }
    const selection = selectArtifacts({ files: listing.files, truncated: false }, globs, caps)
    const fetched = await fetchArtifacts(request, selection.wanted)
    const patch = wantsPatch ? await fetchPatch(request, listing) : { ref: null, skipped: [] }
    return {
      artifacts: fetched.artifacts,
      skippedArtifacts: [...selection.skipped, ...fetched.skipped, ...patch.skipped],
      patch: patch.ref,
    }
  } catch (error) {
    return {
      artifacts: [],
      skippedArtifacts: [{ path: '.', reason: toAppError(error).message }],
      patch: null,
    }
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
    else artifacts.push({ path, ...(await request.blobs.put(entry.content, file.size)) })
  })
  for (const path of expected.keys()) skipped.push({ path, reason: 'it could not be read in the workspace' })
  return { artifacts: artifacts.sort((a, b) => (a.path < b.path ? -1 : 1)), skipped }
}

const fetchPatch = async (
  request: CollectRequest,
  listing: { files: readonly WorkspaceFile[]; changed: ReadonlySet<string> },
): Promise<{ ref: BlobRef | null; skipped: SkippedArtifact[] }> => {
  const tree = baseDirectory(request.cluster.owner, request.workspaceId)
  const before = await listTree(request, tree)
  const now = new Map(listing.files.map(file => [file.path, file]))
  const given = new Set((request.manifest.files ?? []).map(file => file.path))
  const gone = [...before].filter(path => !now.has(path))
  const changed = [...listing.changed].filter(path => now.get(path)?.type === 'file' && !given.has(path))
  const total = changed.reduce((sum, path) => sum + (now.get(path)?.size ?? 0), 0)
  if (total > request.keep.patchBytes) {
    return {
      ref: null,
      skipped: [
        { path: '.', reason: `the changes have ${total} bytes; a patch may have ${request.keep.patchBytes}` },
      ],
    }
  }
  const after = await readStates(request, undefined, changed)
  const old = await readStates(request, tree, [...gone, ...changed.filter(path => before.has(path))])
  const changes: FileChange[] = [...new Set([...gone, ...changed])].map(path => ({
    path,
    before: old.get(path) ?? null,
    after: after.get(path) ?? null,
  }))
  const { text, binary } = makePatch(changes)
  const skipped = binary.map(path => ({
    path,
    reason: 'it is not text and not in the patch; name it in artifacts',
  }))
  const ref = await request.blobs.put(once(Buffer.from(text)), request.keep.patchBytes * 4 + 1024)
  return { ref, skipped }
}

const listTree = async (request: CollectRequest, tree: string): Promise<Set<string>> => {
  const result = await request.cluster.ssh.run({
    target: request.target,
    signal: request.signal,
    script: `cd "$HOME/${tree}" 2>/dev/null && find . -type f\ntrue\n`,
  })
  const lines = result.stdout.toString('utf8').split('\n')
  return new Set(lines.filter(line => line.startsWith('./')).map(line => line.slice(2)))
}

const readStates = async (
  request: CollectRequest,
  directory: string | undefined,
  paths: readonly string[],
): Promise<Map<string, FileState>> => {
  const states = new Map<string, FileState>()
  const wanted = new Set(paths)
  await readFiles(request, directory, paths, async (path, entry) => {
    if (!wanted.has(path) || entry.type !== 'file') return
    const chunks: Uint8Array[] = []
    for await (const chunk of entry.content) chunks.push(chunk)
    states.set(path, { content: Buffer.concat(chunks), executable: (entry.mode & 0o111) !== 0 })
  })
  return states
}

interface TarEntry {
  type: string
  size: number
  mode: number
  content: AsyncIterable<Uint8Array>
}

const readFiles = async (
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

async function* once(data: Buffer): AsyncGenerator<Uint8Array> {
  yield data
}
