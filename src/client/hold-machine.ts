import { randomBytes } from 'node:crypto'
import type { Client } from './daemon-client.ts'

/** A job that holds its machine while a terminal is open in it, and ends with the exit status of that terminal. */
export interface Hold {
  /** The command of the job. */
  readonly command: readonly string[]
  /** The program to run in the terminal, which ends the job when the terminal is closed. */
  wrap(argv: readonly string[]): readonly string[]
  /** Ends the job. Called by the client, not by the program: its last output must be read before the machine ends. */
  release(client: Client, jobId: string, code: number): Promise<void>
}

/** `record`: the job prints what the terminal shows. */
export const createHold = ({ record }: { readonly record: boolean }): Hold => {
  // In the workspace, which both sides see on every provider. The job removes it before its files are collected.
  const pipe = `.deputy-session-${randomBytes(6).toString('hex')}`
  return {
    command: ['sh', '-c', record ? PRINT_AND_HOLD : HOLD, 'sh', pipe],
    wrap: argv => ['sh', '-c', ENTER, 'sh', pipe, ...(record ? recorded(argv, pipe) : argv)],
    release: async (client, jobId, code) => {
      const argv = ['sh', '-c', 'echo "$2" >"$1"', 'sh', pipe, String(code)]
      const { stream, exit } = await client.openSession(jobId, { argv, env: {} })
      stream.resume()
      await exit
    },
  }
}

// Either side may be first.
const MAKE = 'mkfifo -m 600 "$1" 2>/dev/null;'
const MAKE_LOG = 'mkfifo -m 600 "$1.log" 2>/dev/null;'
const HOLD = `${MAKE} read -r code <"$1"; rm -f "$1"; exit "\${code:-1}"`
// `script` writes a line of its own first.
const PRINT_AND_HOLD = `${MAKE_LOG} { read -r line; cat; } <"$1.log"; rm -f "$1.log"; ${HOLD}`
// When the terminal is closed, the client is gone and cannot release the job.
const ENTER = `${MAKE} pipe=$1; shift; trap : INT QUIT; trap 'echo 129 >"$pipe"; exit 129' HUP; "$@"`

const recorded = (argv: readonly string[], pipe: string): readonly string[] => {
  const line = argv.map(word => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
  return ['sh', '-c', `${MAKE_LOG} exec script -qefc "$2" "$1.log"`, 'sh', pipe, line]
}
