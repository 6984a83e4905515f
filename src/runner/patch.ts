import { gitPatch, type PatchedState } from '../files/git-patch.ts'
import { filterCandidates, ignoreFilesOf } from '../files/workspace-changes.ts'
import type { BlobRef, SkippedArtifact } from '../jobs/job.ts'
import { givenInWorkspace, isGitInternal } from '../jobs/paths.ts'
import { formatSize } from '../jobs/sizes.ts'
import type { CollectRequest } from './collect.ts'
import { type BaseListing, listBase, type WorkspaceListing } from './file-list.ts'
import { readFiles } from './read-files.ts'

export interface FetchedPatch {
  ref: BlobRef | null
  skipped: SkippedArtifact[]
}

const EMPTY: BaseListing = { files: new Set(), links: new Set() }

/** What a command changed in its workspace, compared with the copy of what it began with. */
export const fetchPatch = async (
  request: CollectRequest,
  listing: WorkspaceListing,
): Promise<FetchedPatch> => {
  const { keep, manifest } = request
  const before = manifest.workspace?.blob ? await listBase(request) : EMPTY
  const given = givenInWorkspace(manifest.files)
  const ignores = await readIgnores(request, listing)
  const suspects = filterCandidates(
    { listing, ignores, given },
    {
      wasFile: path => before.files.has(path),
      // A file that is not in the base is new, even where a renamed directory left its times alone.
      isUnchanged: ({ path, type }) =>
        !listing.changed.has(path) && (type === 'link' ? before.links : before.files).has(path),
    },
  )
  const bytes = suspects.files.reduce((sum, file) => sum + file.size, 0)
  if (bytes > 2 * keep.patchBytes) return tooLarge(`the changed files have ${formatSize(bytes)}`)
  const paths = suspects.files.map(file => file.path)
  const gone = goneOf(before, listing, given)
  const after = await readStates(request, false, paths)
  const old = await readStates(request, true, [...gone, ...paths.filter(path => before.files.has(path))])
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

/** An incomplete list does not show what was deleted. */
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
  const states = await readStates(request, false, found)
  return [...states].map(([path, { content }]) => ({ path, text: content.toString('utf8') }))
}

const readStates = async (
  request: CollectRequest,
  base: boolean,
  paths: readonly string[],
): Promise<Map<string, PatchedState>> => {
  const states = new Map<string, PatchedState>()
  const wanted = new Set(paths)
  await readFiles({ ...request, base, paths }, async (path, entry) => {
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
