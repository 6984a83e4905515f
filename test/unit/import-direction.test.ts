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
  // One pipeline each for the output and the files of a job, whatever machine they come from.
  output: ['jobs', 'ports'],
  files: ['jobs'],
  store: ['ports', 'jobs', 'files'],
  config: ['ports', 'jobs', 'files', 'proxmox', 'nodes'],
  observability: ['engine', 'ports', 'jobs'],
  engine: ['ports', 'jobs', 'config'],
  // They know nothing of jobs: only the error family, which belongs to everybody.
  proxmox: ['jobs/errors', 'jobs/nearest', 'files'],
  nodes: [
    'jobs/errors',
    'jobs/nearest',
    'jobs/own-property',
    'jobs/deadline',
    'jobs/abortable',
    'files',
    'runner/shell-words',
  ],
  // The proxy that keeps a job to its list of domains: for every provider, and knowing none.
  egress: [],
  guest: ['jobs', 'ports', 'egress', 'runner/program-part'],
  // The protocol and its client side know no provider.
  runner: ['jobs', 'ports', 'output', 'files'],
  providers: [
    'ports',
    'jobs',
    'output',
    'files',
    'runner',
    'proxmox',
    'nodes',
    'guest',
    'egress',
    'config',
    'version',
  ],
  // Where a command runs: between the nodes and whoever asks.
  routing: ['nodes', 'jobs', 'engine/deputy', 'runner/shell-words'],
  // What the CLI and other programs speak to the daemon with.
  client: ['engine/deputy', 'jobs', 'ports', 'config', 'version'],
  // Of the client only what both sides must agree on: the form of pages, events and the daemon's own word.
  http: [
    'engine',
    'jobs',
    'ports',
    'observability',
    'version',
    'guest',
    'client/wire-output',
    'client/wire-event',
    'client/daemon-info',
  ],
  mcp: ['engine', 'jobs', 'ports', 'files', 'client', 'config', 'version', 'proxmox', 'nodes', 'routing'],
  daemon: ['*'],
  // It starts the daemon and the bridge, and asks the daemon for the rest.
  cli: [
    ...['client', 'engine/deputy', 'jobs', 'ports', 'config', 'version', 'files', 'proxmox', 'nodes'],
    ...[
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
