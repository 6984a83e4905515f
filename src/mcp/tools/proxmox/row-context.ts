import type { Proxmox } from '../../../proxmox/proxmox-client.ts'
import type { Method } from './table/define-row.ts'

/** What the tools need of a Proxmox client. */
export type ProxmoxApi = Pick<Proxmox, 'request' | 'waitTask' | 'catalogue'>

export interface Guest {
  readonly vmid: number
  readonly type: 'qemu' | 'lxc'
  readonly node: string
  readonly name?: string
  readonly status?: string
  readonly pool?: string
  readonly tags: readonly string[]
  readonly template: boolean
}

export type Args = Readonly<Record<string, unknown>>
export type OperationName = `${Method} /${string}`

/** What a composite action may use. Every request it makes passes the gate. */
export interface RowContext {
  /** `call('GET /nodes/{node}/hosts', { node })`: names in the path are taken from the values, the rest is sent. */
  call(operation: OperationName, values: Args, options?: { bytes?: boolean }): Promise<unknown>
  /** Something that is no API request, judged and logged as if it were the operation. */
  perform<T>(operation: OperationName, values: Args, work: () => Promise<T>): Promise<T>
  /** Waits for a task; answers its record. Never says success of one that still runs. */
  awaitTask(upid: string, seconds: number): Promise<TaskRecord>
  /** Writes what only the user may read and answers the path. */
  saveSecret(label: string, content: string): Promise<string>
  readonly api: ProxmoxApi
  /** Where files that come from the cluster are put. */
  readonly filesDir: string
  readonly uploadDirs: readonly string[]
  /** Directories of Deputy: nothing in them is uploaded, whatever `uploadDirs` says. */
  readonly ownDirs: readonly string[]
  readonly lxc: LxcExec | undefined
  readonly signal: AbortSignal
}

export interface TaskRecord {
  readonly upid: string
  readonly state: 'running' | 'ok' | 'warnings' | 'failed'
  readonly exitstatus?: string
  readonly log?: readonly string[]
  readonly next?: string
}

export interface LxcCommand {
  readonly node: string
  readonly vmid: number
  readonly command: string
  readonly timeoutS: number
  readonly signal: AbortSignal
}

export type LxcExec = (command: LxcCommand) => Promise<Args>

export type Composite = (args: Args, context: RowContext) => Promise<unknown>
