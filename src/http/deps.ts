import type { Deputy, JobView, SubmitOptions } from '../engine/deputy.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { Tokens } from './tokens.ts'

/** What the control app is made from. */
export interface ControlDeps {
  readonly deputy: Deputy
  readonly daemon: DaemonInfo
  /** The user's own machines; without it there are no routes for them. */
  readonly cluster?: ClusterFront
  /** Calls to a Proxmox cluster that wait for the user; without it there are no routes for them. */
  readonly approvals?: ApprovalFront
  readonly tokens: Tokens
  /** More names for the Host and Origin headers, for reverse proxies. */
  readonly allowedHosts?: readonly string[]
  /** Streamable HTTP at /mcp. */
  readonly mcp?: McpHandler
  /** Every setting with its value and origin; secrets never. */
  explainConfig(): readonly SettingView[]
  readonly log: Log
  readonly metrics: Metrics
  /** Aborted when the daemon leaves: waits and streams end, so that it need not wait for them. */
  readonly closing: AbortSignal
  /** Largest upload, in bytes. */
  readonly maxUpload?: number
}

/** The user's own machines, as this front asks for them. */
export interface ClusterFront {
  status(signal: AbortSignal): Promise<object>
  submit(command: CommandRequest, origin: string, options: SubmitOptions): Promise<{ readonly job: JobView }>
}

export interface ApprovalFront {
  list(): readonly ApprovalPlan[]
  approve(id: string): Promise<ApprovalPlan>
}

export interface ApprovalPlan {
  readonly id: string
  readonly who: string
  readonly summary: string
  readonly params: Readonly<Record<string, unknown>>
  readonly guests: readonly string[]
  readonly expiresAt: number
  readonly approved: boolean
}

export interface CommandRequest {
  readonly command: string
  readonly requires: {
    readonly os?: string
    readonly arch?: string
    readonly capabilities?: readonly string[]
    readonly labels?: Readonly<Record<string, string>>
  }
  readonly node?: string
  readonly autoRoute: boolean
  readonly cwd?: string
  readonly timeoutSeconds: number | undefined
}

export interface DaemonInfo {
  readonly version: string
  readonly socket: string
  /** The directory that holds its state. */
  readonly home: string
  /** Milliseconds of the wall clock. */
  readonly startedAt: number
  /** Where it listens on TCP; known only once it does. */
  url(): string | null
  /** Begins to stop; the answer to the request that asked for it still goes out. */
  stop(): void
  /** Reads the nodes of the configuration again; what runs goes on. Throws when the configuration is not valid. */
  reload(): NodesChange
}

export interface NodesChange {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
  /** Settings beside the nodes that differ from what is in force, which a restart takes over. */
  readonly restart: readonly string[]
}

export interface SettingView {
  readonly path: string
  readonly value: unknown
  /** `default`, a variable of the environment, or the file. */
  readonly origin: string
}

export type McpHandler = (
  request: Request,
  caller: { readonly readOnly: boolean },
) => Response | Promise<Response>

/** The part of a pino logger that is used here. */
export interface Log {
  error(details: object, message: string): void
  warn(details: object, message: string): void
}
