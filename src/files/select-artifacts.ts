import { globMatcher } from '../jobs/artifact-globs.ts'
import type { SkippedArtifact } from '../jobs/job.ts'
import { isGitInternal } from '../jobs/paths.ts'
import { formatSize } from '../jobs/sizes.ts'
import type { ListedFile, Listing } from './file-listing.ts'

export interface Selection {
  readonly wanted: readonly ListedFile[]
  readonly skipped: readonly SkippedArtifact[]
}

const MAX_SKIPPED = 100

/** Selects the artifacts among the listed files, with the reason for each skipped match. */
export const selectArtifacts = (
  listing: Pick<Listing, 'files' | 'truncated'>,
  globs: readonly string[],
  caps: { files: number; bytes: number },
): Selection => {
  if (globs.length === 0) return { wanted: [], skipped: [] }
  const wanted: ListedFile[] = []
  const skipped: SkippedArtifact[] = []
  let bytes = 0
  let gitFiles = 0
  const matcher = globMatcher(globs)
  const found = listing.files.filter(file => matcher.matches(file.path)).sort(byPath)
  for (const file of found) {
    if (isGitInternal(file.path)) {
      gitFiles++
      continue
    }
    const reason =
      file.type === 'link'
        ? 'it is a symbolic link'
        : file.type === 'other'
          ? 'it is not a regular file'
          : wanted.length >= caps.files
            ? `more than ${caps.files} files match`
            : bytes + file.size > caps.bytes
              ? `with its ${formatSize(file.size)} the artifacts would exceed ${formatSize(caps.bytes)}`
              : undefined
    if (reason === undefined) {
      wanted.push(file)
      bytes += file.size
    } else if (skipped.length < MAX_SKIPPED) skipped.push({ path: file.path, reason })
  }
  if (gitFiles > 0) skipped.push({ path: '.git', reason: gitReason(gitFiles) })
  if (matcher.isExhausted())
    skipped.push({ path: '.', reason: 'the globs take too long to match: use fewer wildcards' })
  if (listing.truncated)
    skipped.push({ path: '.', reason: 'the workspace holds too many files to list all of them' })
  return { wanted, skipped }
}

/** Git's own files are skipped: a hook or a configuration would run with the user's next git command. */
const gitReason = (count: number): string =>
  `${count} of git's own files are left out; to bring back a repository: git bundle create repo.bundle --all`

const byPath = (a: ListedFile, b: ListedFile): number => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0)
