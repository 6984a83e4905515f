import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Returns the id that separates the files of this installation on a node from those of others. A home directory that
 * was copied to another computer, for example with a cloned VM, gets a new id there: two installations with one id
 * would take over each other's commands.
 */
export const installationId = (directory: string, machine: string | null = machineId()): string => {
  const file = join(directory, 'owner')
  const [stored = '', storedMachine] = read(file)?.trim().split(' ') ?? []
  const thisMachine = machine === null ? undefined : machineHash(machine)
  const sameMachine =
    storedMachine === undefined || thisMachine === undefined || storedMachine === thisMachine
  const valid = /^[0-9a-f]{12}$/.test(stored) && sameMachine
  if (valid && (storedMachine !== undefined || thisMachine === undefined)) return stored
  const id = valid ? stored : randomBytes(6).toString('hex')
  writeFileSync(file, `${[id, thisMachine].filter(Boolean).join(' ')}\n`, { mode: 0o600 })
  return id
}

/** Null where the system has none. machine-id(5) asks programs not to expose it, so only its hash is stored. */
const machineId = (): string | null =>
  ['/etc/machine-id', '/var/lib/dbus/machine-id']
    .map(file => read(file)?.trim() ?? '')
    .find(id => /^[0-9a-f]{32}$/.test(id)) ?? null

const machineHash = (machine: string): string =>
  createHash('sha256').update(`deputy owner ${machine}`).digest('hex').slice(0, 12)

const read = (file: string): string | undefined => {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
