import type { SkippedArtifact } from '../jobs/job.ts'
import { isGitInternal } from '../jobs/paths.ts'
import type { BaseFile, BaseTree } from './base-tree.ts'
import type { ListedFile, Listing } from './file-listing.ts'
import type { PatchedFile } from './git-patch.ts'
import { MAX_IGNORE_BYTES } from './gitignore.ts'
import { ignoreCheck, isIgnoreFile } from './tree-ignore.ts'

const MAX_IGNORE_FILES = 1000
const MAX_IGNORE_SUM = 16 * MAX_IGNORE_BYTES
/** A file modified within this time before the start could change again with the same timestamp. */
const RACY_MS = 3000

/** Returns the final .gitignore files of a workspace, which decide what is in its patch. */
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
  /** Files that may have changed; their contents decide. */
  readonly files: readonly ListedFile[]
  readonly skipped: readonly SkippedArtifact[]
}

/** Finds files that may have changed, from a listing of the workspace. */
export const findCandidates = ({
  listing,
  base,
  ignores,
  given,
  startedAt,
}: FinalWorkspace): ChangeCandidates => {
  const isUnchanged = (file: ListedFile): boolean =>
    file.type === 'file'
      ? looksUnchanged(file, base.files.get(file.path), startedAt)
      : isSameLink(file, base.links.get(file.path))
  const isIgnoredFile = ignoreCheck(ignores)
  const known = new Set(given)
  const skipped: SkippedArtifact[] = []
  const files = listing.files.filter(file => {
    const old = base.files.has(file.path)
    if (isGitInternal(file.path) || known.has(file.path)) return false
    if (!old && isIgnoredFile(file.path)) return false
    if (file.type === 'file') return !isUnchanged(file)
    if (old)
      skipped.push({
        path: file.path,
        reason: 'it is not a regular file any more: the patch only deletes it',
      })
    else if (!isUnchanged(file))
      skipped.push({ path: file.path, reason: 'only regular files are in the patch' })
    return false
  })
  if (listing.unnamed > 0)
    skipped.push({
      path: '.',
      reason: `${listing.unnamed} files whose names are not valid UTF-8 are not in the patch`,
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
  /** Size of all changed files, before and after. */
  readonly bytes: number
}

/** Compares the contents of the candidates and returns the changes. */
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

/** Adds the contents to the changes. */
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

/** A Buffer sent to another thread arrives as a Uint8Array. */
const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

/** A new file, or one with another size or mode, needs no comparison. */
export const hasCertainlyChanged = (file: ListedFile, old: BaseFile | undefined): boolean =>
  old === undefined || old.size !== file.size || old.executable !== isExecutable(file)

const looksUnchanged = (file: ListedFile, old: BaseFile | undefined, startedAt: number): boolean =>
  old !== undefined &&
  !hasCertainlyChanged(file, old) &&
  old.modified === file.modified &&
  old.modified * 1000 < startedAt - RACY_MS

const isExecutable = (file: ListedFile): boolean => (file.mode & 0o111) !== 0

/** A listing has the length of a link's target, not the target itself. */
const isSameLink = (file: ListedFile, target: string | undefined): boolean =>
  file.type === 'link' && target !== undefined && Buffer.byteLength(target) === file.size
