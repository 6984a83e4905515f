import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Names this installation on the nodes: what another one runs there is none of our business. A home that was copied
 * to another computer, as with a clone of a VM, becomes an installation of its own there: two of one name would take
 * the commands out of each other's hands.
 */
export const ownerOf = (directory: string, machine: string | null = machineId()): string => {
  const file = join(directory, 'owner')
  const [known = '', where] = read(file)?.trim().split(' ') ?? []
  const here = machine === null ? undefined : mark(machine)
  const ours = /^[0-9a-f]{12}$/.test(known) && (where === undefined || here === undefined || where === here)
  if (ours && (where !== undefined || here === undefined)) return known
  const owner = ours ? known : randomBytes(6).toString('hex')
  writeFileSync(file, `${[owner, here].filter(Boolean).join(' ')}\n`, { mode: 0o600 })
  return owner
}

/** Where the system has one; it is not to be told to others, so only its mark is kept. */
const machineId = (): string | null =>
  ['/etc/machine-id', '/var/lib/dbus/machine-id']
    .map(file => read(file)?.trim() ?? '')
    .find(id => /^[0-9a-f]{32}$/.test(id)) ?? null

const mark = (machine: string): string =>
  createHash('sha256').update(`deputy owner ${machine}`).digest('hex').slice(0, 12)

const read = (file: string): string | undefined => {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
