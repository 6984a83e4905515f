import { writeSync } from 'node:fs'
import pino, { type Logger } from 'pino'

/** JSON lines on stderr, because stdout belongs to protocols. Fields: job, machine, runtime, ms, err. */
export const createLog = (level: string): Logger =>
  pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      // A last safeguard: no log call should contain a secret in the first place.
      redact: {
        paths: ['*.secrets', '*.env', '*.authorization', '*.password', '*.token'],
        censor: '[redacted]',
      },
    },
    { write: writeOrDrop },
  )

/** Drops lines that cannot be written, for example on a full disk; logging must never end the daemon. */
const writeOrDrop = (line: string): void => {
  try {
    writeSync(2, line)
  } catch {
    // Drop this line; a later one may succeed.
  }
}
