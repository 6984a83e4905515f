import type { Proxmox } from '../../../proxmox/proxmox-client.ts'
import type { Method } from './table/define-row.ts'

/** The part of the Proxmox client that the tools use. */
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

/** What a composite action can use. All its requests pass the gate. */
export interface RowContext {
  /** `call('GET /nodes/{node}/hosts', { node })`: fills the path from the values and sends the others as parameters. */
  call(operation: OperationName, values: Args, options?: { bytes?: boolean }): Promise<unknown>
  /** Runs work that is not an API request; the gate authorizes and logs it as the given operation. */
  perform<T>(operation: OperationName, values: Args, work: () => Promise<T>): Promise<T>
  /** Waits for a task and returns its record. A task that still runs has the state `running`. */
  awaitTask(upid: string, seconds: number): Promise<TaskRecord>
  /** Writes a secret to a file that only the user can read, and returns its path. */
  saveSecret(label: string, content: string): Promise<string>
  readonly api: ProxmoxApi
  /** Directory for files downloaded from the cluster. */
  readonly filesDir: string
  readonly uploadDirs: readonly string[]
  /** Deputy's own directories. Their files are never uploaded, even if `uploadDirs` contains them. */
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
