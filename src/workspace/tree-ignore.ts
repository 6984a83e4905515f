import { posix } from 'node:path'
import ignore from 'ignore'
import { type IgnoreRules, isIgnored } from './ignore-rules.ts'

/** What the .gitignore files inside a tree say, for a tree that lies elsewhere. */
export type TreeRules = IgnoreRules & { readonly directory: string }

/** No .gitignore worth reading is larger. */
export const MAX_IGNORE_BYTES = 1024 * 1024

export const isIgnoreFile = (file: { path: string; type: string; size: number }): boolean =>
  file.type === 'file' && posix.basename(file.path) === '.gitignore' && file.size <= MAX_IGNORE_BYTES

export const treeRules = (files: readonly { path: string; text: string }[]): TreeRules[] =>
  [...files]
    .sort((a, b) => a.path.length - b.path.length)
    .map(({ path, text }) => {
      const directory = posix.dirname(path)
      const strip = directory === '.' ? 0 : directory.length + 1
      return { directory, strip, prefix: '', matcher: ignore().add(text) }
    })

/** A file is ignored when it or a directory above it is. */
export const isIgnoredFile = (path: string, rules: readonly TreeRules[]): boolean => {
  const parts = path.split('/')
  for (let depth = 1; depth <= parts.length; depth++) {
    const part = parts.slice(0, depth).join('/')
    const within = rules.filter(rule => rule.strip === 0 || part.startsWith(`${rule.directory}/`))
    if (isIgnored(part, depth < parts.length, within)) return true
  }
  return false
}
