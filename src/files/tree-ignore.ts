import { posix } from 'node:path'
import { type IgnoreRules, isIgnored, MAX_IGNORE_BYTES, parseIgnoreRules } from './gitignore.ts'

/** About two seconds. A job wrote the rules and the names, and the daemon waits for the result. */
const MAX_STEPS = 500_000_000

export const isIgnoreFile = (file: { path: string; type: string; size: number }): boolean =>
  file.type === 'file' && posix.basename(file.path) === '.gitignore' && file.size <= MAX_IGNORE_BYTES

/** Whether the .gitignore files of a remote tree ignore a file or one of its parent directories. */
export const ignoreCheck = (
  files: readonly { path: string; text: string }[],
): ((path: string) => boolean) => {
  const rules = [...files].sort((a, b) => a.path.length - b.path.length).map(rulesOf)
  const budget = { steps: MAX_STEPS }
  const directories = new Map([['.', false]])
  const isIgnoredDirectory = (path: string): boolean => {
    const known = directories.get(path)
    if (known !== undefined) return known
    const ignored = isIgnoredDirectory(posix.dirname(path)) || isIgnored(path, true, rules, budget)
    directories.set(path, ignored)
    return ignored
  }
  return path => isIgnoredDirectory(posix.dirname(path)) || isIgnored(path, false, rules, budget)
}

const rulesOf = ({ path, text }: { path: string; text: string }): IgnoreRules =>
  parseIgnoreRules(text, path.slice(0, path.lastIndexOf('/') + 1))
