import { hkdfSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { AppError } from '../jobs/errors.ts'

export interface FleetKey {
  /** Seals the context of runs. */
  readonly sealing: Buffer
  /** Tells daemons with the same key from others; does not reveal it. */
  readonly id: string
}

const MIN_CHARACTERS = 32
const MAKE = 'Create one with openssl rand -hex 32, and copy it to each daemon of the fleet.'

/** Reads the key that the daemons of a fleet share. */
export const readFleetKey = (file: string): FleetKey => {
  const text = read(file).trim()
  if (text.length < MIN_CHARACTERS)
    throw new AppError(
      'invalid',
      `The key of the fleet in ${file} has less than ${MIN_CHARACTERS} characters.`,
      {
        hint: MAKE,
      },
    )
  const derive = (purpose: string, bytes: number): Buffer =>
    Buffer.from(hkdfSync('sha256', text, '', `deputy ${purpose}`, bytes))
  return { sealing: derive('sealed context', 32), id: derive('fleet key id', 8).toString('hex') }
}

const read = (file: string): string => {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new AppError('invalid', `The key of the fleet cannot be read from ${file} (${code}).`, {
      hint: MAKE,
    })
  }
}
