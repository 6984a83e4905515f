import { readFileSync } from 'node:fs'

const read = (): string => {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return (manifest as { version: string }).version
}

/** The version of this package; fronts and daemon compare theirs. */
export const VERSION = read()

/** Negative when `a` is older than `b`. Pre-release suffixes do not count: they share the wire format. */
export const compareVersions = (a: string, b: string): number => {
  const left = numbers(a)
  const right = numbers(b)
  for (let i = 0; i < 3; i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

const numbers = (version: string): number[] =>
  version.split(/[.+-]/, 3).map(part => Number.parseInt(part, 10) || 0)
