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
    pino.destination({ fd: 2, sync: true }),
  )
