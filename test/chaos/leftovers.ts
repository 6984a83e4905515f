import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Home } from '../../src/config/home.ts'
import { processes } from './processes.ts'

/** Files that no job needs any more. */
export const leftFiles = ({ stateDir }: Home): string[] =>
  ['sandbox/runs', 'host/runs', 'blobs'].flatMap(name => filesBelow(join(stateDir, name)))

/** Sockets and directories of shims; a daemon that was stopped has ended its free shims. */
export const leftShims = ({ stateDir }: Home): string[] =>
  ['sandbox/shims', 'host/shims'].flatMap(name =>
    entries(join(stateDir, name))
      .filter(entry => /\.(sock|d)$/.test(entry))
      .map(entry => `${name}/${entry}`),
  )

/** Processes that neither this driver nor a provider's equipment started. */
export const leftProcesses = (expected: readonly number[]): string[] => {
  const all = processes()
  const known = new Set([1, process.pid, ...expected])
  for (let grown = true; grown; ) {
    const children = all.filter(one => !known.has(one.pid) && known.has(one.parent) && one.parent !== 1)
    for (const { pid } of children) known.add(pid)
    grown = children.length > 0
  }
  return all
    .filter(({ pid, zombie }) => !known.has(pid) && !zombie)
    .map(({ pid, command }) => `process ${pid}: ${command.slice(0, 200)}`)
}

export const mounts = (): string[] => readFileSync('/proc/self/mounts', 'utf8').trim().split('\n')

/** Named after the home, as the sandbox does it. */
export const leftCgroups = ({ stateDir }: Home): string[] => {
  const prefix = `deputy-${createHash('sha256').update(stateDir).digest('hex').slice(0, 8)}-`
  const groups = mounts()
    .map(line => line.split(' '))
    .filter(([, , type]) => type?.startsWith('cgroup'))
    .map(([, path]) => path ?? '')
  const own = readFileSync('/proc/self/cgroup', 'utf8')
    .split('\n')
    .map(line => line.split(':')[2] ?? '')
  return [...new Set(groups.flatMap(group => ['', ...own].map(path => join(group, path))))].flatMap(path =>
    entries(path)
      .filter(name => name.startsWith(prefix))
      .map(name => `cgroup ${join(path, name)}`),
  )
}

const filesBelow = (directory: string): string[] =>
  readdirSafely(directory).flatMap(entry =>
    entry.isDirectory() ? filesBelow(join(directory, entry.name)) : [join(directory, entry.name)],
  )

const readdirSafely = (directory: string) => {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch {
    return []
  }
}

const entries = (directory: string): string[] => readdirSafely(directory).map(({ name }) => name)
