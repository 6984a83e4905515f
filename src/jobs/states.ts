/** The life of a job. Every change of state anywhere in the product is a row of this table. */
export const STATES = [
  'pending',
  'provisioning',
  'running',
  'success',
  'failed',
  'timeout',
  'cancelled',
] as const

export type JobState = (typeof STATES)[number]
export type TerminalState = 'success' | 'failed' | 'timeout' | 'cancelled'

const NEXT: Record<JobState, readonly JobState[]> = {
  // A pending job can fail without ever being provisioned: no runtime fits it any more.
  pending: ['provisioning', 'failed', 'cancelled', 'timeout'],
  // Back to pending: the machinery failed before the command started, and a retry is left.
  provisioning: ['running', 'pending', 'failed', 'timeout', 'cancelled'],
  // Back to pending only when the manifest asks for a second run of a command that had started.
  running: ['success', 'failed', 'timeout', 'cancelled', 'pending'],
  success: [],
  failed: [],
  timeout: [],
  cancelled: [],
}

export const TERMINAL_STATES: readonly TerminalState[] = ['success', 'failed', 'timeout', 'cancelled']

export const isTerminal = (state: JobState): state is TerminalState => NEXT[state].length === 0

export const canMove = (from: JobState, to: JobState): boolean => NEXT[from].includes(to)

/** The states from which `to` may be entered: the guard of the SQL statement that makes the move. */
export const sourcesOf = (to: JobState): JobState[] => STATES.filter(from => canMove(from, to))
