import type { Stats } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { type IgnoreRules, isIgnored, rulesAbove, rulesIn } from './ignore-rules.ts'
import { trackedFiles } from './tracked.ts'

export interface WorkspaceEntry {
  /** Relative to the workspace, with slashes. */
  readonly path: string
  readonly stats: Stats
}

/**
 * Everything that belongs to a workspace: parents before children, names in order. `.git` does not, and neither
 * does what .gitignore files name, unless git tracks it all the same.
 */
export async function* walkWorkspace(root: string): AsyncGenerator<WorkspaceEntry> {
  const [above, tracked] = await Promise.all([rulesAbove(root), trackedFiles(root)])
  yield* walk(root, '', { rules: above, tracked, onlyTracked: false })
}

interface Choice {
  readonly rules: readonly IgnoreRules[]
  readonly tracked: ReadonlySet<string>
  /** Inside a directory that is ignored. */
  readonly onlyTracked: boolean
}

async function* walk(root: string, relative: string, choice: Choice): AsyncGenerator<WorkspaceEntry> {
  const { tracked, onlyTracked } = choice
  const rules = [...choice.rules, ...(await rulesIn(root, relative))]
  const names = (await readdir(join(root, relative))).sort()
  for (const name of names) {
    if (name === '.git') continue
    const path = posix.join(relative, name)
    const stats = await lstat(join(root, path)).catch(() => undefined)
    if (stats === undefined) continue
    const ignored = onlyTracked || isIgnored(path, stats.isDirectory(), rules)
    if (ignored && !tracked.has(path)) continue
    yield { path, stats }
    if (stats.isDirectory()) yield* walk(root, path, { rules, tracked, onlyTracked: ignored })
  }
}
