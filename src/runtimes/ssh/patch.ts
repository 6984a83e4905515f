import { baseDirectory, listFiles, type WorkspaceListing } from '../../cluster/sync/workspace.ts'
import type { BlobRef, SkippedArtifact } from '../../jobs/job.ts'
import { formatSize } from '../../jobs/sizes.ts'
import { gitPatch, type PatchedState } from '../../workspace/git-patch.ts'
import {
  isGitPath,
  isIgnoredFile,
  isIgnoreFile,
  type TreeRules,
  treeRules,
} from '../../workspace/tree-ignore.ts'
import { type CollectRequest, readFiles } from './collect.ts'

export interface FetchedPatch {
  ref: BlobRef | null
  skipped: SkippedArtifact[]
}

/** What a command changed in its workspace on a node, against the copy of what it began with. */
export const fetchPatch = async (
  request: CollectRequest,
  listing: WorkspaceListing,
): Promise<FetchedPatch> => {
  const { cluster, keep } = request
  const base = baseDirectory(cluster.owner, request.workspaceId)
  const before = await listFiles({ ...request, ssh: cluster.ssh, directory: base })
  const rules = await ignoreRules(request, listing)
  const given = new Set((request.manifest.files ?? []).map(file => file.path))
  const candidates = listing.files.filter(
    ({ path }) => !isGitPath(path) && !given.has(path) && (before.has(path) || !isIgnoredFile(path, rules)),
  )
  const present = new Set(candidates.filter(file => file.type === 'file').map(file => file.path))
  const others = candidates.filter(({ path, type }) => type !== 'file' && isFresh(path, listing, before))
  const skipped = others.map(({ path }) => ({ path, reason: 'only regular files are in the patch' }))
  // What is not in the base is new, even where a renamed directory left the times of its files alone.
  const changed = candidates.filter(({ path, type }) => type === 'file' && isFresh(path, listing, before))
  const gone = [...before].filter(path => !present.has(path) && !given.has(path) && !isGitPath(path))
  const bytes = changed.reduce((sum, file) => sum + file.size, 0)
  if (bytes > 2 * keep.patchBytes) return tooLarge(`the changed files have ${formatSize(bytes)}`)
  const paths = changed.map(file => file.path)
  const after = await readStates(request, undefined, paths)
  const old = await readStates(request, base, [...gone, ...paths.filter(path => before.has(path))])
  const files = [...new Set([...gone, ...paths])].map(path => ({
    path,
    before: old.get(path) ?? null,
    after: after.get(path) ?? null,
  }))
  const text = gitPatch(files, keep.patchBytes)
  if (text === undefined) return tooLarge(`it has more than ${formatSize(keep.patchBytes)}`)
  const ref = text.length === 0 ? null : await request.blobs.put(once(text), keep.patchBytes)
  return { ref, skipped }
}

const isFresh = (path: string, listing: WorkspaceListing, before: ReadonlySet<string>): boolean =>
  listing.changed.has(path) || !before.has(path)

const tooLarge = (reason: string): FetchedPatch => ({
  ref: null,
  skipped: [{ path: '.', reason: `no patch: ${reason}` }],
})

/** What the workspace's own .gitignore files say now. */
const ignoreRules = async (request: CollectRequest, listing: WorkspaceListing): Promise<TreeRules[]> => {
  const found = listing.files.filter(isIgnoreFile).slice(0, 1000)
  const states = await readStates(
    request,
    undefined,
    found.map(file => file.path),
  )
  return treeRules([...states].map(([path, { content }]) => ({ path, text: content.toString('utf8') })))
}

const readStates = async (
  request: CollectRequest,
  directory: string | undefined,
  paths: readonly string[],
): Promise<Map<string, PatchedState>> => {
  const states = new Map<string, PatchedState>()
  const wanted = new Set(paths)
  await readFiles(request, directory, paths, async (path, entry) => {
    if (!wanted.has(path) || entry.type !== 'file') return
    const chunks: Uint8Array[] = []
    for await (const chunk of entry.content) chunks.push(chunk)
    states.set(path, { content: Buffer.concat(chunks), executable: (entry.mode & 0o111) !== 0 })
  })
  return states
}

async function* once(data: Buffer): AsyncGenerator<Uint8Array> {
  yield data
}
