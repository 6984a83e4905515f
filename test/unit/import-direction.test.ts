import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const SRC = fileURLToPath(new URL('../../src', import.meta.url))

/**
 * What each folder of src/, two levels deep, may import besides itself. `a` stands for all of src/a. A folder that is
 * not listed may import nothing but packages.
 */
const MAY_IMPORT: Record<string, readonly string[]> = {
  jobs: [],
  version: [],
  egress: [],
  ports: ['jobs'],
  // One pipeline each for the output and the files of a job, for every provider.
  output: ['jobs', 'ports'],
  files: ['jobs'],
  store: ['ports', 'jobs', 'files'],
  config: ['ports', 'jobs', 'files', 'nodes'],
  observability: ['engine', 'jobs'],
  engine: ['ports', 'jobs', 'config', 'output'],
  // The protocol and its client side know no provider.
  runner: ['jobs', 'ports', 'output', 'files', 'egress'],
  guest: ['jobs', 'egress', 'runner'],
  // These know nothing of jobs: of src/jobs they use only helpers without state.
  proxmox: ['jobs/errors', 'jobs/semaphore', 'files', 'runner/shell-words', 'proxmox/catalogue'],
  'proxmox/catalogue': ['jobs/errors', 'jobs/deadline', 'jobs/nearest', 'jobs/records', 'proxmox'],
  nodes: ['jobs/errors', 'jobs/nearest', 'jobs/own-property', 'jobs/deadline', 'nodes'],
  'nodes/addresses': ['jobs/errors', 'jobs/deadline', 'nodes'],
  'nodes/policy': ['jobs/errors', 'nodes'],
  'nodes/probe': ['jobs/errors', 'jobs/deadline', 'jobs/semaphore', 'nodes'],
  'nodes/ssh': ['jobs/errors', 'jobs/deadline', 'nodes'],
  'nodes/sync': ['jobs/errors', 'files/tree-source', 'nodes/ssh'],
  // A provider knows no other provider. The shim in `local` starts the machines of the two providers that share it.
  'providers/local': [
    ...['ports', 'jobs', 'output', 'files', 'runner', 'egress', 'nodes'],
    ...['providers/sandbox', 'providers/host'],
  ],
  'providers/sandbox': ['ports', 'jobs', 'files', 'runner', 'egress', 'providers/local'],
  'providers/host': ['ports', 'jobs', 'runner', 'providers/local'],
  'providers/proxmox': [
    ...['ports', 'jobs', 'output', 'files', 'runner', 'egress', 'guest', 'proxmox'],
    'config/proxmox-section',
  ],
  'providers/container': ['ports', 'jobs', 'runner', 'egress', 'nodes'],
  'providers/microvm': ['ports', 'jobs', 'runner', 'egress', 'nodes'],
  'providers/ssh': ['ports', 'jobs', 'files', 'runner', 'nodes'],
  // Where a command runs: between the nodes and the fronts.
  routing: ['nodes', 'jobs', 'engine/deputy', 'runner/shell-words'],
  // What the CLI and other programs use to call the daemon.
  client: [
    ...['engine/deputy', 'jobs', 'ports', 'config', 'files', 'version'],
    // Types of answers.
    ...['routing/cluster-status', 'proxmox/cluster-overview'],
  ],
  http: [
    ...['engine', 'jobs', 'ports', 'observability', 'client', 'files/keep-file', 'http/routes'],
    ...['config/manifest-templates', 'proxmox/cluster-overview'],
  ],
  'http/routes': ['engine', 'jobs', 'ports', 'client', 'config/manifest-templates', 'http'],
  mcp: ['engine', 'jobs', 'proxmox', 'mcp/bridge', 'mcp/tools'],
  // Runs in the process of the MCP client, so it loads as little as possible.
  'mcp/bridge': ['client', 'config', 'version', 'mcp'],
  'mcp/tools': ['engine', 'jobs', 'files', 'config', 'proxmox', 'routing', 'runner/shell-words', 'mcp'],
  daemon: ['*'],
  // The CLI starts the daemon and the bridge, and asks the daemon for the rest.
  cli: [
    'client',
    'engine/deputy',
    'jobs',
    'ports',
    'config',
    'version',
    'files/place-below',
    'daemon/run-daemon',
    'mcp/bridge',
    'cli',
  ],
  'cli/args': ['jobs'],
  'cli/terminal': ['jobs', 'ports'],
  'cli/completion': ['client', 'config', 'cli'],
  'cli/demo': ['client', 'engine/deputy', 'jobs', 'cli'],
  'cli/manifest': ['jobs', 'files', 'runner/shell-words', 'cli'],
  'cli/mcp-clients': ['jobs', 'files', 'cli'],
  'cli/nodes': ['client', 'jobs', 'config', 'nodes', 'routing', 'runner/shell-words', 'cli'],
  'cli/patch': ['client', 'files', 'jobs', 'cli'],
  'cli/proxmox': ['client', 'jobs', 'proxmox', 'cli'],
  'cli/workspace': ['client', 'jobs', 'config', 'files', 'cli'],
  'cli/commands': [
    ...['client', 'engine/deputy', 'jobs', 'config', 'version', 'nodes', 'proxmox', 'guest', 'cli'],
    ...['store/write-backup', 'store/restore-backup'],
    ...['providers/microvm/build-image', 'providers/microvm/image-store'],
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

/** Static imports that are left when the types are erased. */
const valueImports = (file: string): string[] =>
  [...readFileSync(file, 'utf8').matchAll(/^(?:import|export)\s+(?!type\b)([^'"]*?)from\s+'(\.[^']+)'/gm)]
    .filter(([, names]) => !/^\{(\s*type\s[^,}]*,?)+\s*\}\s*$/.test(names!))
    .map(match => withoutExtension(relative(SRC, resolve(dirname(file), match[2]!))))

/** `providers/ssh` for src/providers/ssh/…, `jobs` for src/jobs/…: the first two folders of a path. */
const folderOf = (path: string): string => {
  const folders = path.split('/').slice(0, -1)
  return folders.length === 0 ? path.replace(/\.ts$/, '') : folders.slice(0, 2).join('/')
}

const matches = (entry: string, target: string): boolean => target === entry || target.startsWith(`${entry}/`)

const all = files(SRC).map(file => ({ from: relative(SRC, file), targets: imports(file) }))

describe('imports', () => {
  it('point one way: fronts to the engine to the domain, and adapters to the ports', () => {
    const wrong = all.flatMap(({ from, targets }) => {
      const folder = folderOf(from)
      const allowed = MAY_IMPORT[folder] ?? []
      return targets
        .filter(target => folderOf(target) !== folder && !allowed.includes('*'))
        .filter(target => !allowed.some(entry => matches(entry, target)))
        .map(target => `${from} imports ${target}`)
    })
    expect(wrong).toEqual([])
  })

  it('are allowed only where they exist', () => {
    const stale = Object.entries(MAY_IMPORT).flatMap(([folder, entries]) => {
      const own = all.filter(({ from }) => folderOf(from) === folder)
      const targets = own.flatMap(file => file.targets).filter(target => folderOf(target) !== folder)
      const unused = entries.filter(entry => entry !== '*' && !targets.some(target => matches(entry, target)))
      return own.length === 0 ? [`${folder} does not exist`] : unused.map(entry => `${folder}: ${entry}`)
    })
    expect(stale).toEqual([])
  })

  it('form no cycle between modules that run code of each other', () => {
    const graph = new Map(files(SRC).map(file => [withoutExtension(relative(SRC, file)), valueImports(file)]))
    const done = new Set<string>()
    const cycles: string[] = []
    const visit = (module: string, path: readonly string[]): void => {
      const start = path.indexOf(module)
      if (start >= 0) cycles.push([...path.slice(start), module].join(' -> '))
      if (start >= 0 || done.has(module)) return
      for (const next of graph.get(module) ?? []) visit(next, [...path, module])
      done.add(module)
    }
    for (const module of graph.keys()) visit(module, [])
    expect(cycles).toEqual([])
  })

  it('of the domain need no Node at all', () => {
    const offenders = files(join(SRC, 'jobs')).filter(file => /from 'node:/.test(readFileSync(file, 'utf8')))
    expect(offenders).toEqual([])
  })
})
