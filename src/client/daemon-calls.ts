import type { Setting } from '../config/load.ts'
import type { DaemonSummary, JobView, MachineView } from '../engine/deputy.ts'
import type { Readiness } from '../ports.ts'
import type { ClusterOverview } from '../proxmox/cluster-overview.ts'
import type { ClusterStatusView } from '../routing/cluster-status.ts'
import type { DaemonInfo, SampleView } from './daemon-info.ts'
import type { Connection } from './transport.ts'

/** A routed command: its job, and why the router chose this computer or a node. */
export interface RoutedView {
  readonly job: JobView
  readonly auto_routed: boolean
  readonly routing: string
  readonly local_node: string
}

/** A call to the Proxmox cluster that waits for the user's approval. */
export interface ApprovalView {
  readonly id: string
  readonly who: string
  readonly call: string
  readonly params: Readonly<Record<string, unknown>>
  readonly guests: readonly string[]
  readonly expires_at: string
  readonly approved: boolean
}

interface Checks {
  readonly runtimes: readonly Readiness[]
}

/** The calls about the daemon itself: its machines, nodes, checks, settings and approvals. */
export const createDaemonCalls = ({ transport, retry }: Connection) => ({
  /** Makes the daemon reload its nodes. */
  reload: (): Promise<{ added: string[]; removed: string[]; changed: string[]; restart?: string[] }> =>
    transport.json({ method: 'POST', path: '/api/daemon/reload' }),

  /** Load and health of this computer and every node. */
  clusterStatus: (signal?: AbortSignal): Promise<ClusterStatusView> =>
    retry({ path: '/api/cluster', answerMs: 120_000, signal }),

  /** The nodes and guests of the Proxmox VE cluster. */
  proxmox: (signal?: AbortSignal): Promise<ClusterOverview & { readonly configured: boolean }> =>
    retry({ path: '/api/proxmox', signal }),

  /** Runs a command on the computer that fits best. */
  routeCommand: (command: object): Promise<RoutedView> =>
    transport.json({ method: 'POST', path: '/api/cluster/commands', json: command, answerMs: 120_000 }),

  approvals: async (signal?: AbortSignal): Promise<readonly ApprovalView[]> =>
    (await retry<{ approvals: readonly ApprovalView[] }>({ path: '/api/proxmox/approvals', signal }))
      .approvals,

  approve: (id: string): Promise<ApprovalView> =>
    transport.json({ method: 'POST', path: `/api/proxmox/approvals/${encodeURIComponent(id)}` }),

  refuse: (id: string): Promise<ApprovalView> =>
    transport.json({ method: 'DELETE', path: `/api/proxmox/approvals/${encodeURIComponent(id)}` }),

  /** An address that logs a browser in to the console once. */
  consoleUrl: async ({ mayApprove }: { mayApprove: boolean }): Promise<string> => {
    const json = { may_approve: mayApprove }
    return (await transport.json<{ url: string }>({ method: 'POST', path: '/api/console/codes', json })).url
  },

  /** The daemons that share the database; empty with SQLite. */
  daemons: async (signal?: AbortSignal): Promise<readonly DaemonSummary[]> =>
    (await retry<{ daemons: readonly DaemonSummary[] }>({ path: '/api/daemons', signal })).daemons,

  /** Stops the claims of a daemon, or resumes them. */
  drainDaemon: (name: string, draining: boolean): Promise<void> =>
    retry({ method: 'POST', path: `/api/daemons/${encodeURIComponent(name)}/drain`, json: { draining } }),

  machines: async (signal?: AbortSignal): Promise<readonly MachineView[]> =>
    (await retry<{ machines: readonly MachineView[] }>({ path: '/api/machines', signal })).machines,

  destroyMachine: (id: string): Promise<void> =>
    retry({ method: 'DELETE', path: `/api/machines/${encodeURIComponent(id)}`, answerMs: 300_000 }),

  doctor: async (signal?: AbortSignal): Promise<readonly Readiness[]> =>
    (await retry<Checks>({ path: '/api/doctor', answerMs: 120_000, signal })).runtimes,

  /** Boots throw-away machines. If the caller disconnects before the answer, the daemon stops and destroys them. */
  probe: async (signal?: AbortSignal): Promise<readonly Readiness[]> => {
    const call = { method: 'POST', path: '/api/doctor/probe', answerMs: 3_600_000, signal } as const
    return (await transport.json<Checks>(call)).runtimes
  },

  config: async (signal?: AbortSignal): Promise<readonly Setting[]> =>
    (await retry<{ settings: readonly Setting[] }>({ path: '/api/config', signal })).settings,

  daemon: (answerMs?: number, signal?: AbortSignal): Promise<DaemonInfo> =>
    retry({ path: '/api/daemon', answerMs, signal }),

  /** The minutes of the last hours in which something happened. */
  history: async (hours: number, signal?: AbortSignal): Promise<readonly SampleView[]> =>
    (await retry<{ samples: readonly SampleView[] }>({ path: '/api/history', query: { hours }, signal }))
      .samples,

  openApi: (signal?: AbortSignal): Promise<unknown> => retry({ path: '/openapi.json', signal }),

  stopDaemon: ({ ifIdle }: { ifIdle?: boolean } = {}): Promise<void> =>
    transport.json({ method: 'POST', path: '/api/daemon/stop', json: ifIdle ? { if_idle: true } : {} }),
})
