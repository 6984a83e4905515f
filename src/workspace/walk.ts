import type { Stats } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join, posix } from 'node:path'
import type { MatchBudget } from '../jobs/glob-pattern.ts'
import { type IgnoreRules, ignoreBudget, isIgnored } from './gitignore.ts'
import { rulesIn, surroundingsOf } from './ignore-files.ts'
import { trackedFiles } from './tracked.ts'

export interface WorkspaceEntry {
  /** Relative to the workspace, with slashes. */
  readonly path: string
  readonly stats: Stats
}

/**
 * Everything that belongs to a workspace: parents before children, names in order. `.git` does not, and neither
 * does what .gitignore files name, unless git tracks it all the same. No git is run: its configuration may be hostile.
 */
export async function* walkWorkspace(root: string): AsyncGenerator<WorkspaceEntry> {
  const { git, prefix, rules } = await surroundingsOf(root)
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
  /** Inside a directory that is ignored. */
  onlyTracked: boolean,
): AsyncGenerator<WorkspaceEntry> {
  const { root, prefix, tracked, budget } = options
  const rules = [...above, ...(await rulesIn(root, directory, prefix))]
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

/** `a`, `a/b` and `a/b/c` of `a/b/c/`. */
const directoriesOf = (prefix: string): string[] =>
  prefix
    .split('/')
    .slice(0, -1)
    .map((_, index, names) => names.slice(0, index + 1).join('/'))
