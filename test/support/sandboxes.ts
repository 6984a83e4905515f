import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { processesWith } from '../integration/providers/provider-contract.ts'
import type { Harness, ProviderSubject } from './providers.ts'

export interface SandboxVariant {
  readonly name: string
  readonly subject: ProviderSubject
  readonly skip: string | undefined
}

const variant = (name: string, options: Record<string, unknown>, skip?: string): SandboxVariant => ({
  name,
  subject: {
    module: 'providers/sandbox/sandbox-provider.js',
    factory: 'createSandboxProvider',
    options: { graceSeconds: 1, spare: 1, ...options },
  },
  skip,
})

const noBwrap = ['/usr/bin/bwrap', '/usr/local/bin/bwrap'].some(existsSync)
  ? undefined
  : 'bubblewrap is not installed'

/** Every way a sandbox is built; each is tested alike. */
export const SANDBOXES: readonly SandboxVariant[] = [
  variant('bubblewrap', { backend: 'bwrap' }, noBwrap),
  variant('util-linux', { backend: 'unshare' }),
  variant('bubblewrap without cgroups', { backend: 'bwrap', cgroups: false }, noBwrap),
]

/** What a sandbox might leave on this computer: processes, mounts, cgroups. */
export const leftovers = (harness: Harness): string[] => [
  ...processesWith(harness.stateDir).filter(line => !line.includes('shim.js')),
  ...readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter(line => line.includes(harness.stateDir)),
  ...cgroups(harness.stateDir),
]

/** Machines that wait for a job belong to a living shim. */
const livingShims = (): string[] =>
  processesWith('shim.js').flatMap(line => /"id":"([0-9a-f]{8})"/.exec(line)?.[1] ?? [])

const cgroups = (stateDir: string): string[] => {
  const prefix = `deputy-${createHash('sha256').update(stateDir).digest('hex').slice(0, 8)}-`
  const living = livingShims()
  return walk('/sys/fs/cgroup', 5).filter(
    path => path.includes(prefix) && !living.some(id => path.includes(`${prefix}${id}`)),
  )
}

const walk = (dir: string, depth: number): string[] => {
  if (depth === 0) return []
  return entriesOf(dir)
    .filter(entry => entry.isDirectory())
    .flatMap(entry => [`${dir}/${entry.name}`, ...walk(`${dir}/${entry.name}`, depth - 1)])
}

/** Those of other users cannot be read, and are not ours. */
const entriesOf = (dir: string) => {
  try {
    return readdirSync(dir, { withFileTypes: true })
  } catch {
    return []
  }
}
