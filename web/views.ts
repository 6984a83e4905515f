/** The parts of the API's answers that the page shows. */
export interface Summary {
  readonly job_id: string
  readonly status: string
  readonly task: string
  readonly agent: string
  readonly runtime: string
  readonly created_at: string
  readonly duration_seconds: number | null
  readonly exit_code: number | null
  readonly labels?: Readonly<Record<string, string>>
}

export interface JobPage {
  readonly jobs: readonly Summary[]
  readonly next_cursor: string | null
}

export interface Job extends Omit<Summary, 'labels'> {
  readonly labels: Readonly<Record<string, string>>
  readonly where?: string
  readonly parent_id: string | null
  readonly origin: string
  readonly progress: string | null
  readonly queue_position: number | null
  readonly started_at: string | null
  readonly completed_at: string | null
  readonly timeout_seconds: number
  readonly attempts: number
  readonly cancel_requested: boolean
  readonly phases: Readonly<Record<string, number>>
  readonly signal: string | null
  readonly error: { readonly message: string; readonly hint?: string } | null
  readonly output_bytes: number
}

export interface Artifact {
  readonly path: string
  readonly size: number
}

export interface OutputPage {
  readonly pieces: readonly {
    readonly stream?: 'stdout' | 'stderr'
    readonly text?: string
    readonly base64?: string
    readonly skipped?: number
  }[]
}

export interface Daemon {
  readonly version: string
  readonly jobs: Readonly<Record<string, number>>
}

export const STATES = ['pending', 'provisioning', 'running', 'success', 'failed', 'timeout', 'cancelled']

export const isOver = (status: string): boolean => STATES.indexOf(status) > 2
