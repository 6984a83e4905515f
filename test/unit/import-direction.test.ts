import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const SRC = fileURLToPath(new URL('../../src', import.meta.url))

/** What each part of src/ may import, besides itself. A part that is not listed may import nothing but packages. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  jobs: [],
  ports: ['jobs'],
  version: [],
  // How files of users and of jobs are opened: needs nothing and serves everybody.
  files: [],
  store: ['ports', 'jobs', 'files'],
  workspace: ['jobs', 'files'],
  config: ['ports', 'jobs', 'files', 'proxmox', 'cluster'],
  observability: ['engine', 'ports', 'jobs'],
  engine: ['ports', 'jobs', 'config'],
  // They know nothing of jobs: only the error family, which belongs to everybody.
  proxmox: ['jobs/errors', 'jobs/nearest', 'files'],
  cluster: [
    'jobs/errors',
    'jobs/nearest',
    'jobs/own-property',
    'jobs/deadline',
    'jobs/abortable',
    'workspace',
    'files',
    'runner/shell-words',
  ],
  // The proxy that keeps a job to its list of domains: for every runtime, and knowing none.
  egress: [],
  guest: ['jobs', 'ports', 'egress'],
  // The protocol and its client side know no provider; the pipeline of output and files still lies with the local ones.
  runner: ['jobs', 'ports', 'workspace', 'runtimes/local'],
  runtimes: [
    'ports',
    'jobs',
    'files',
    'workspace',
    'runner',
    'proxmox',
    'cluster',
    'guest',
    'egress',
    'config',
    'version',
  ],
  // Where a command runs: between the nodes and whoever asks.
  routing: ['cluster', 'jobs', 'engine/deputy', 'runner/shell-words'],
  control: ['engine/deputy', 'jobs', 'ports', 'config', 'version'],
  // The library for other programs: the client of the daemon under a public name.
  client: ['control', 'engine/deputy', 'jobs', 'config', 'version'],
  // Of the client only what both sides must agree on: the form of pages, events and the daemon's own word.
  http: [
    'engine',
    'jobs',
    'ports',
    'observability',
    'version',
    'guest',
    'control/wire-output',
    'control/wire-event',
    'control/daemon-info',
  ],
  mcp: ['engine', 'jobs', 'ports', 'files', 'control', 'config', 'version', 'proxmox', 'cluster', 'routing'],
  daemon: ['*'],
  // It starts the daemon and the bridge, and asks the daemon for the rest.
  cli: [
    ...['control', 'engine/deputy', 'jobs', 'ports', 'config', 'version', 'workspace', 'proxmox', 'cluster'],
    ...[
      'files',
      'routing',
      'guest',
      'daemon/run-daemon',
      'mcp/bridge',
      'store/write-backup',
      'store/restore-backup',
      'runner/shell-words',
    ],
  ],
}

const files = (directory: string): string[] =>
  readdirSync(directory, { withFileTypes: true }).flatMap(entry =>
    entry.isDirectory()
      ? files(join(directory, entry.name))
      : entry.name.endsWith('.ts')
        ? [join(directory, entry.name)]
        : [],
  )

const withoutExtension = (path: string): string => path.replace(/\.ts$/, '')

const imports = (file: string): string[] =>
  [...readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(match =>
    withoutExtension(relative(SRC, resolve(dirname(file), match[1]!))),
  )

const partOf = (path: string): string => path.split('/')[0]!.replace(/\.ts$/, '')

describe('imports', () => {
  it('point one way: fronts to the engine to the domain, and adapters to the ports', () => {
    const wrong: string[] = []
    for (const file of files(SRC)) {
      const from = relative(SRC, file)
      const allowed = MAY_IMPORT[partOf(from)] ?? []
      for (const target of imports(file)) {
        const ok =
          allowed.includes('*') ||
          partOf(target) === partOf(from) ||
          allowed.some(prefix => target === prefix || target.startsWith(`${prefix}/`))
        if (!ok) wrong.push(`${from} imports ${target}`)
      }
    }
    expect(wrong).toEqual([])
  })

  it('of the domain need no Node at all', () => {
    const offenders = files(join(SRC, 'jobs')).filter(file => /from 'node:/.test(readFileSync(file, 'utf8')))
    expect(offenders).toEqual([])
  })
})
