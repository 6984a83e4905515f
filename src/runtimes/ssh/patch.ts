import {
  type BaseListing,
  baseDirectory,
  listBase,
  type WorkspaceListing,
} from '../../cluster/sync/workspace.ts'
import type { BlobRef, SkippedArtifact } from '../../jobs/job.ts'
import { givenInWorkspace, isGitInternal } from '../../jobs/paths.ts'
import { formatSize } from '../../jobs/sizes.ts'
import { gitPatch, type PatchedState } from '../../workspace/git-patch.ts'
import { ignoreFilesOf, suspectsAmong } from '../local/workspace-changes.ts'
import { type CollectRequest, readFiles } from './collect.ts'

export interface FetchedPatch {
  ref: BlobRef | null
  skipped: SkippedArtifact[]
}

const EMPTY: BaseListing = { files: new Set(), links: new Set() }

/** What a command changed in its workspace on a node, against the copy of what it began with. */
export const fetchPatch = async (
  request: CollectRequest,
  listing: WorkspaceListing,
): Promise<FetchedPatch> => {
  const { cluster, keep, manifest, workspaceId: id } = request
  const { owner, ssh } = cluster
  const before = manifest.workspace?.blob ? await listBase({ ...request, ssh, owner, id }) : EMPTY
  const given = givenInWorkspace(manifest.files)
  const ignores = await readIgnores(request, listing)
  const suspects = suspectsAmong(
    { listing, ignores, given },
    {
      wasFile: path => before.files.has(path),
      // What is not in the base is new, even where a renamed directory left the times of its files alone.
      isUnchanged: ({ path, type }) =>
        !listing.changed.has(path) && (type === 'link' ? before.links : before.files).has(path),
    },
  )
  const bytes = suspects.files.reduce((sum, file) => sum + file.size, 0)
  if (bytes > 2 * keep.patchBytes) return tooLarge(`the changed files have ${formatSize(bytes)}`)
  const paths = suspects.files.map(file => file.path)
  const gone = goneOf(before, listing, given)
  const after = await readStates(request, undefined, paths)
  const base = baseDirectory(owner, id)
  const old = await readStates(request, base, [...gone, ...paths.filter(path => before.files.has(path))])
  const files = [...new Set([...gone, ...paths])].map(path => ({
    path,
    before: old.get(path) ?? null,
    after: after.get(path) ?? null,
  }))
  const text = gitPatch(files, keep.patchBytes)
  if (text === undefined) return tooLarge(`it has more than ${formatSize(keep.patchBytes)}`)
  const ref = text.length === 0 ? null : await request.blobs.put(once(text), keep.patchBytes, request.jobId)
  return { ref, skipped: [...suspects.skipped] }
}

/** Half of a list says nothing of what is not in it. */
const goneOf = (before: BaseListing, listing: WorkspaceListing, given: readonly string[]): string[] => {
  if (listing.truncated) return []
  const there = new Set(listing.files.filter(file => file.type === 'file').map(file => file.path))
  return [...before.files].filter(path => !there.has(path) && !given.includes(path) && !isGitInternal(path))
}

const tooLarge = (reason: string): FetchedPatch => ({
  ref: null,
  skipped: [{ path: '.', reason: `no patch: ${reason}` }],
})

/** What the workspace's own .gitignore files say now. */
const readIgnores = async (
  request: CollectRequest,
  listing: WorkspaceListing,
): Promise<{ path: string; text: string }[]> => {
  const found = ignoreFilesOf(listing).map(file => file.path)
  const states = await readStates(request, undefined, found)
  return [...states].map(([path, { content }]) => ({ path, text: content.toString('utf8') }))
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
