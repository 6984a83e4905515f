import type { SkippedArtifact } from '../../jobs/job.ts'
import { isGitInternal } from '../../jobs/paths.ts'
import type { PatchedFile } from '../../workspace/git-patch.ts'
import { MAX_IGNORE_BYTES } from '../../workspace/gitignore.ts'
import { ignoreCheck, isIgnoreFile } from '../../workspace/tree-ignore.ts'
import type { BaseFile, BaseTree } from './base-tree.ts'
import type { ListedFile, Listing } from './file-listing.ts'

const MAX_IGNORE_FILES = 1000
const MAX_IGNORE_SUM = 16 * MAX_IGNORE_BYTES
/** A file changed within this time of its own date could be changed again without it showing. */
const RACY_MS = 3000

/** The .gitignore files of a workspace as it was left; they decide what belongs into its patch. */
export const ignoreFilesOf = (listing: Listing): ListedFile[] => {
  let sum = 0
  return listing.files
    .filter(isIgnoreFile)
    .slice(0, MAX_IGNORE_FILES)
    .filter(file => {
      sum += file.size
      return sum <= MAX_IGNORE_SUM
    })
}

export interface FinalWorkspace {
  readonly listing: Listing
  readonly base: BaseTree
  readonly ignores: readonly { readonly path: string; readonly text: string }[]
  /** Files of the manifest: the user has them already. */
  readonly given: readonly string[]
  /** When the command started, in milliseconds. */
  readonly startedAt: number
}

export interface ChangeCandidates {
  /** Files that may have changed: what they hold decides. */
  readonly files: readonly ListedFile[]
  readonly skipped: readonly SkippedArtifact[]
}

/** What of a workspace may have changed, by what a listing of it tells. */
export const findCandidates = ({ base, startedAt, ...final }: FinalWorkspace): ChangeCandidates =>
  filterCandidates(final, {
    wasFile: path => base.files.has(path),
    isUnchanged: file =>
      file.type === 'file'
        ? looksUnchanged(file, base.files.get(file.path), startedAt)
        : isSameLink(file, base.links.get(file.path)),
  })

/** How a workspace began, for one who compares. */
export interface InitialWorkspace {
  /** Whether there was a regular file. */
  wasFile(path: string): boolean
  isUnchanged(file: ListedFile): boolean
}

/** The same where what it began as is known otherwise. */
export const filterCandidates = (
  { listing, ignores, given }: Pick<FinalWorkspace, 'listing' | 'ignores' | 'given'>,
  { wasFile, isUnchanged }: InitialWorkspace,
): ChangeCandidates => {
  const isIgnoredFile = ignoreCheck(ignores)
  const known = new Set(given)
  const skipped: SkippedArtifact[] = []
  const files = listing.files.filter(file => {
    const old = wasFile(file.path)
    if (isGitInternal(file.path) || known.has(file.path)) return false
    if (!old && isIgnoredFile(file.path)) return false
    if (file.type === 'file') return !isUnchanged(file)
    if (old)
      skipped.push({ path: file.path, reason: 'it is no regular file any more: the patch only deletes it' })
    else if (!isUnchanged(file))
      skipped.push({ path: file.path, reason: 'only regular files are in the patch' })
    return false
  })
  if (listing.unnamed > 0)
    skipped.push({
      path: '.',
      reason: `${listing.unnamed} files whose names are no UTF-8 are not in the patch`,
    })
  if (listing.truncated)
    skipped.push({ path: '.', reason: 'not every file could be listed: deletions are not in the patch' })
  return { files, skipped }
}

export interface Change {
  readonly path: string
  /** Whether it is executable on each side; null where it does not exist. */
  readonly before: boolean | null
  readonly after: boolean | null
}

export interface Changes {
  readonly files: readonly Change[]
  /** Of both sides of all of them. */
  readonly bytes: number
}

/** What has changed, by the contents of what was suspected. */
export const changesOf = (
  { listing, base }: Pick<FinalWorkspace, 'listing' | 'base'>,
  candidates: readonly ListedFile[],
  collected: readonly { readonly path: string; readonly sha256: string; readonly size: number }[],
): Changes => {
  const modes = new Map(candidates.map(file => [file.path, isExecutable(file)]))
  const present = new Set(listing.files.filter(file => file.type === 'file').map(file => file.path))
  const files: Change[] = []
  let bytes = 0
  for (const { path, sha256, size } of collected) {
    const old = base.files.get(path)
    const after = modes.get(path) ?? false
    if (old !== undefined && old.sha256 === sha256 && old.executable === after) continue
    files.push({ path, before: old?.executable ?? null, after })
    bytes += size + (old?.size ?? 0)
  }
  for (const [path, old] of listing.truncated ? [] : base.files) {
    if (present.has(path) || isGitInternal(path)) continue
    files.push({ path, before: old.executable, after: null })
    bytes += old.size
  }
  return { files, bytes }
}

/** Changes with what they are about, as a patch wants them. */
export const patchedFiles = (
  changes: readonly Change[],
  before: ReadonlyMap<string, Uint8Array>,
  after: ReadonlyMap<string, Uint8Array>,
): PatchedFile[] =>
  changes.map(change => ({
    path: change.path,
    before: stateOf(change.before, before.get(change.path)),
    after: stateOf(change.after, after.get(change.path)),
  }))

const stateOf = (executable: boolean | null, content: Uint8Array | undefined): PatchedFile['before'] =>
  executable === null || content === undefined ? null : { content: asBuffer(content), executable }

/** From another thread it comes as a bare array. */
const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

/** For a new file, or one of another size or mode, there is nothing to compare. */
export const hasCertainlyChanged = (file: ListedFile, old: BaseFile | undefined): boolean =>
  old === undefined || old.size !== file.size || old.executable !== isExecutable(file)

const looksUnchanged = (file: ListedFile, old: BaseFile | undefined, startedAt: number): boolean =>
  old !== undefined &&
  !hasCertainlyChanged(file, old) &&
  old.modified === file.modified &&
  old.modified * 1000 < startedAt - RACY_MS

const isExecutable = (file: ListedFile): boolean => (file.mode & 0o111) !== 0

/** A listing tells how long the way of a link is, not where it leads. */
const isSameLink = (file: ListedFile, target: string | undefined): boolean =>
  file.type === 'link' && target !== undefined && Buffer.byteLength(target) === file.size
