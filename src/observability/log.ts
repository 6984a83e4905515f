import { writeSync } from 'node:fs'
import pino, { type Logger } from 'pino'

/** JSON lines on stderr: stdout belongs to protocols. Fields: job, machine, runtime, ms, err. */
export const createLog = (level: string): Logger =>
  pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      // The last line of defence; nothing that holds a secret is meant to be logged at all.
      redact: {
        paths: ['*.secrets', '*.env', '*.authorization', '*.password', '*.token'],
        censor: '[redacted]',
      },
    },
    { write: writeOrDrop },
  )

/** A log that cannot be written, on a full disk above all, ends nothing. */
const writeOrDrop = (line: string): void => {
  try {
    writeSync(2, line)
  } catch {
    // The next line may fit again.
  }
}
