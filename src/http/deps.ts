import type { ManifestTemplates } from '../config/manifest-templates.ts'
import type { Deputy, JobView, SubmitOptions } from '../engine/deputy.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { ClusterOverview } from '../proxmox/cluster-overview.ts'
import type { SessionTickets } from './session-tickets.ts'
import type { Tokens } from './tokens.ts'

/** Dependencies of the control app. */
export interface ControlDeps {
  readonly deputy: Deputy
  readonly daemon: DaemonInfo
  /** The user's nodes; without them, their routes do not exist. */
  readonly cluster?: ClusterFront
  /** Calls to a Proxmox cluster that wait for approval. */
  readonly approvals?: ApprovalFront
  /** Reads the nodes and guests of the Proxmox cluster; absent without one. */
  readonly proxmox?: ((signal: AbortSignal) => Promise<ClusterOverview>) | undefined
  readonly sessions: SessionTickets
  readonly templates: ManifestTemplates
  readonly tokens: Tokens
  /** More names for the Host and Origin headers, for reverse proxies. */
  readonly allowedHosts?: readonly string[]
  /** MCP: Streamable HTTP at /mcp, the older SSE transport at /sse. */
  readonly mcp?: McpHandler
  /** Every setting with its value and origin, without secrets. */
  explainConfig(): readonly SettingView[]
  readonly log: Log
  readonly metrics: Metrics
  /** Aborted when the daemon stops: ends all waits and streams. */
  readonly closing: AbortSignal
  /** Maximum size of an upload, in bytes. */
  readonly maxUpload?: number
}

/** Operations on the user's nodes. */
export interface ClusterFront {
  status(signal: AbortSignal): Promise<object>
  submit(command: CommandRequest, origin: string, options: SubmitOptions): Promise<{ readonly job: JobView }>
}

export interface ApprovalFront {
  list(): readonly ApprovalPlan[]
  approve(id: string): Promise<ApprovalPlan>
  refuse(id: string): ApprovalPlan
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

interface CommandRequest {
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
  /** The state directory. */
  readonly home: string
  /** Wall clock, in milliseconds. */
  readonly startedAt: number
  /** Address of the TCP listener; null until it listens. */
  url(): string | null
  /** Starts to stop the daemon; the response to the current request is still sent. */
  stop(): void
  /**
   * Reloads the nodes from the configuration without affecting running jobs. Throws when the configuration is
   * invalid.
   */
  reload(): NodesChange
}

interface NodesChange {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
  /** Changed settings outside of `cluster`, which take effect after a restart. */
  readonly restart: readonly string[]
}

interface SettingView {
  readonly path: string
  readonly value: unknown
  /** `default`, an environment variable, or the file. */
  readonly origin: string
}

type McpHandler = (request: Request, caller: { readonly readOnly: boolean }) => Response | Promise<Response>

/** The methods of a pino logger that this module uses. */
interface Log {
  error(details: object, message: string): void
  warn(details: object, message: string): void
}
