/** The states of a job. This table lists every allowed transition. */
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
  // A pending job fails when its kept machine is gone, a needed job failed or its queueTimeout has passed.
  pending: ['provisioning', 'failed', 'cancelled', 'timeout'],
  // Back to pending: provisioning failed before the command started, and a retry is left.
  provisioning: ['running', 'pending', 'failed', 'timeout', 'cancelled'],
  // Back to pending only when the manifest allows a second run of a started command.
  running: ['success', 'failed', 'timeout', 'cancelled', 'pending'],
  success: [],
  failed: [],
  timeout: [],
  cancelled: [],
}

export const TERMINAL_STATES: readonly TerminalState[] = ['success', 'failed', 'timeout', 'cancelled']

export const isTerminal = (state: JobState): state is TerminalState => NEXT[state].length === 0

export const canMove = (from: JobState, to: JobState): boolean => NEXT[from].includes(to)

/** The states from which a job may move to `to`: the WHERE clause of the SQL update. */
export const sourcesOf = (to: JobState): JobState[] => STATES.filter(from => canMove(from, to))
