import type { Duplex } from 'node:stream'

export interface TerminalSize {
  readonly columns: number
  readonly rows: number
}

/** A program to run in a machine beside its job. */
export interface SessionRequest {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** The program gets a terminal of this size; without it, its stdin and stdout are pipes. */
  readonly terminal?: TerminalSize
}

export interface Session {
  /** Its stdin, and its stdout and stderr in one. Destroy it to end the program. */
  readonly stream: Duplex
  /** The exit status, 128+N after a signal; null when the machine has ended or the program was killed with it. */
  readonly exit: Promise<number | null>
  /** Without a terminal it does nothing. */
  resize(size: TerminalSize): void
}
