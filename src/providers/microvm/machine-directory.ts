import { createHash } from 'node:crypto'
import {
  chownSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import type { FoundMachine } from '../../ports.ts'

/** Where the files of a VM are: its socket and the console of its kernel. */
export const machineDirectory = (stateDir: string, id: string): string => join(runsDirectory(stateDir), id)

const runsDirectory = (stateDir: string): string => join(stateDir, 'microvm', 'runs')

export const SOCKET = 'agent.sock'
/** For snapshots: the control connection of QEMU, and where the state of its devices goes in and out. */
export const MONITOR = 'monitor.sock'
export const STATE = 'state.sock'
const CONSOLE = 'console'

export const makeMachineDirectory = (stateDir: string, id: string, uid: number | undefined): void => {
  const directory = machineDirectory(stateDir, id)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  if (uid !== undefined) chownSync(directory, uid, uid)
}

export const removeMachineDirectory = (stateDir: string, id: string): void =>
  rmSync(machineDirectory(stateDir, id), { recursive: true, force: true })

/** Opens the directory: the path of a Unix socket is limited to 108 bytes, which /proc/self/fd/N/name keeps. */
export const openMachineDirectory = (stateDir: string, id: string): number | undefined => {
  try {
    return openSync(machineDirectory(stateDir, id), constants.O_DIRECTORY | constants.O_RDONLY)
  } catch {
    return undefined
  }
}

export const listMachineDirectories = (stateDir: string): FoundMachine[] => {
  let ids: string[] = []
  try {
    ids = readdirSync(runsDirectory(stateDir))
  } catch {
    // No VM was made yet.
  }
  return ids.map(id => ({ id, details: {}, ...createdAt(machineDirectory(stateDir, id)) }))
}

const createdAt = (directory: string): { createdAt?: number } => {
  try {
    return { createdAt: statSync(directory).birthtimeMs }
  } catch {
    return {}
  }
}

/** The last lines that the kernel of a VM printed, for errors. */
export const lastConsoleLines = (stateDir: string, id: string): string => {
  try {
    const text = readFileSync(join(machineDirectory(stateDir, id), CONSOLE), 'utf8')
    return text
      .trim()
      .split(/[\r\n]+/)
      .slice(-3)
      .join('; ')
  } catch {
    return ''
  }
}

/** No distribution, nor systemd, nor a sandbox of Deputy, uses these. */
const HIGH = { first: 1_800_000_000, count: 90_000_000 }
/** For containers that map only 65536 ids. */
const LOW = { first: 61_200, count: 300 }

/** The user id of a VM of a root daemon: QEMU must not be root. Undefined for an ordinary user, whose own is used. */
export const machineUid = (
  id: string,
  uidMap: string = readFileSync('/proc/self/uid_map', 'utf8'),
): number | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const largest = Math.max(
    ...uidMap
      .trim()
      .split('\n')
      .map(line => {
        const [inside = 0, , count = 0] = line.trim().split(/\s+/).map(Number)
        return inside + count - 1
      }),
  )
  const { first, count } = largest >= HIGH.first + HIGH.count ? HIGH : LOW
  return first + (createHash('sha256').update(id).digest().readUInt32LE(0) % count)
}
