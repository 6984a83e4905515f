import type { Stats } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join, posix } from 'node:path'
import type { MatchBudget } from '../jobs/glob-pattern.ts'
import { type IgnoreRules, ignoreBudget, isIgnored } from './gitignore.ts'
import { findEnclosingRepository, readIgnoreRules } from './ignore-files.ts'
import { trackedFiles } from './tracked-files.ts'

export interface WorkspaceEntry {
  /** Relative to the workspace, with slashes. */
  readonly path: string
  readonly stats: Stats
}

/**
 * Lists the files of a workspace, parents before children, sorted by name. Skips `.git` and ignored files that git
 * does not track. Does not run git, because its configuration may be hostile.
 */
export async function* walkWorkspace(root: string): AsyncGenerator<WorkspaceEntry> {
  const { git, prefix, rules } = await findEnclosingRepository(root)
  const tracked = git === undefined ? new Set<string>() : await trackedFiles(git, prefix)
  const budget = ignoreBudget()
  const onlyTracked = directoriesOf(prefix).some(path => isIgnored(path, true, rules, budget))
  yield* walk({ root, prefix, tracked, budget }, '', rules, onlyTracked)
}

interface Walk {
  readonly root: string
  readonly prefix: string
  readonly tracked: ReadonlySet<string>
  readonly budget: MatchBudget
}

async function* walk(
  options: Walk,
  directory: string,
  above: readonly IgnoreRules[],
  /** True inside an ignored directory. */
  onlyTracked: boolean,
): AsyncGenerator<WorkspaceEntry> {
  const { root, prefix, tracked, budget } = options
  const rules = [...above, ...(await readIgnoreRules(root, directory, prefix))]
  const names = (await readdir(join(root, directory))).sort()
  for (const name of names) {
    if (name === '.git') continue
    const path = posix.join(directory, name)
    const stats = await lstat(join(root, path)).catch(() => undefined)
    if (stats === undefined) continue
    const ignored = onlyTracked || isIgnored(`${prefix}${path}`, stats.isDirectory(), rules, budget)
    if (ignored && !tracked.has(path)) continue
    yield { path, stats }
    if (stats.isDirectory()) yield* walk(options, path, rules, ignored)
  }
}

/** `a/b/c/` → `a`, `a/b` and `a/b/c`. */
const directoriesOf = (prefix: string): string[] =>
  prefix
    .split('/')
    .slice(0, -1)
    .map((_, index, names) => names.slice(0, index + 1).join('/'))
