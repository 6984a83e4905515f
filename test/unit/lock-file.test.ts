import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

interface LockedPackage {
  integrity?: string
  link?: boolean
  optionalDependencies?: Record<string, string>
}

const packages: Record<string, LockedPackage> = JSON.parse(
  readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8'),
).packages

describe('the lock file', () => {
  it('has the digest of every package', () => {
    const without = Object.entries(packages).filter(
      ([path, { integrity, link }]) => path !== '' && !link && !/^sha512-[\w+/]{86}==$/.test(integrity ?? ''),
    )
    expect(without.map(([path]) => path)).toEqual([])
  })

  // npm leaves out optional packages that the registry lacks: `npm ci` would then fail on their platforms.
  it('has the packages of every platform', () => {
    const absent = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter(
        name => !packages[`node_modules/${name}`] && !packages[`${path}/node_modules/${name}`],
      ),
    )
    expect(absent).toEqual([])
  })
})
