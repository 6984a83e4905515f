import { setMaxListeners } from 'node:events'
import { abortable, createDeadline } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import { createSemaphore } from '../../jobs/semaphore.ts'
import type { ClusterNode } from '../inventory.ts'
import { type Health, overloadReason, type Thresholds } from './node-health.ts'
import type { ProbeReport } from './probe-report.ts'

export interface NodeStatus {
  id: string
  health: Health
  /** Why the node is not healthy. */
  reason: string | undefined
  /** When the health last changed. */
  since: number
  report: ProbeReport | undefined
  latencyMs: number
  /** When the node was last probed. */
  at: number
  error?: AppError
}

interface NodeMonitorOptions {
  /** Probes a node once. Throws an AppError when the node is unreachable. */
  probe: (node: ClusterNode, signal: AbortSignal) => Promise<{ report: ProbeReport; latencyMs: number }>
  thresholds: Thresholds
  timeoutMs: number
  /** How long a status counts as fresh. */
  freshMs?: number
  parallel?: number
  now?: () => number
}

export interface NodeMonitor {
  /** Returns the last status without waiting. Starts a probe in the background when it is not fresh. */
  peek(node: ClusterNode): NodeStatus | undefined
  /** Probes all nodes that have no fresh status, in parallel. Each probe is limited by the timeout. */
  check(nodes: readonly ClusterNode[], options?: { force?: boolean }): Promise<NodeStatus[]>
  /** Records that a command could not reach the node. */
  markUnreachable(node: ClusterNode, error: AppError): void
  forget(id: string): void
  close(): void
}

/** A probe gives its slot to the next one after this time; most nodes answer sooner. */
const SLOT_MS = 500
/** Delays background probes, so that they do not compete for CPU with the command that is about to start. */
const REFRESH_DELAY_MS = 25

export const createNodeMonitor = (options: NodeMonitorOptions): NodeMonitor => {
  const { freshMs = 5_000, parallel = 64, now = Date.now } = options
  const known = new Map<string, NodeStatus>()
  const running = new Map<string, Promise<NodeStatus>>()
  const closing = new AbortController()
  // Every probe adds a listener.
  setMaxListeners(0, closing.signal)
  const withSlot = createProbeSlots(parallel, options)

  const record = (status: Omit<NodeStatus, 'since' | 'at'>): NodeStatus => {
    const before = known.get(status.id)
    const since = before?.health === status.health ? before.since : now()
    const next = { ...status, since, at: now() }
    known.set(status.id, next)
    return next
  }

  const probeNode = async (node: ClusterNode): Promise<NodeStatus> => {
    try {
      const { report, latencyMs } = await withSlot(() => probeInTime(node))
      const reason = overloadReason(report, options.thresholds)
      return record({ id: node.id, health: reason ? 'overloaded' : 'healthy', reason, report, latencyMs })
    } catch (error) {
      return fail(node, error instanceof AppError ? error : noAnswer(node, options.timeoutMs, error))
    }
  }

  /** The timeout starts here, after the wait for a slot, and applies even if the probe ignores its signal. */
  const probeInTime = async (node: ClusterNode): ReturnType<NodeMonitorOptions['probe']> => {
    closing.signal.throwIfAborted()
    const deadline = createDeadline([closing.signal], options.timeoutMs)
    const { signal } = deadline
    return abortable(options.probe(node, signal), signal).finally(deadline.clear)
  }

  const fail = (node: ClusterNode, error: AppError): NodeStatus =>
    record({
      id: node.id,
      health: 'unreachable',
      reason: error.message,
      report: known.get(node.id)?.report,
      latencyMs: known.get(node.id)?.latencyMs ?? 0,
      error,
    })

  const refresh = (node: ClusterNode): Promise<NodeStatus> => {
    const current = running.get(node.id)
    if (current) return current
    const started = probeNode(node).finally(() => running.delete(node.id))
    running.set(node.id, started)
    return started
  }

  const scheduled = new Set<string>()
  const refreshSoon = (node: ClusterNode): void => {
    if (scheduled.has(node.id)) return
    scheduled.add(node.id)
    const timer = setTimeout(() => {
      scheduled.delete(node.id)
      if (!closing.signal.aborted) void refresh(node)
    }, REFRESH_DELAY_MS)
    timer.unref()
  }

  const isFresh = (status: NodeStatus | undefined): status is NodeStatus =>
    status !== undefined && now() - status.at < freshMs

  return {
    peek: node => {
      const status = known.get(node.id)
      if (!isFresh(status)) refreshSoon(node)
      return status
    },
    check: (nodes, { force = false } = {}) =>
      Promise.all(
        nodes.map(node => {
          const status = known.get(node.id)
          return !force && isFresh(status) ? status : refresh(node)
        }),
      ),
    markUnreachable: (node, error) => {
      fail(node, error)
    },
    forget: id => {
      known.delete(id)
    },
    close: () => closing.abort(new AppError('unavailable', 'The node monitor is closed.')),
  }
}

/** Limits the probes that run at once. A probe releases its slot early, or a few dead nodes would block all others. */
const createProbeSlots = (parallel: number, options: Pick<NodeMonitorOptions, 'timeoutMs'>) => {
  const acquire = createSemaphore(parallel)
  return async <T>(work: () => Promise<T>): Promise<T> => {
    const release = await acquire()
    const timer = setTimeout(release, Math.min(SLOT_MS, options.timeoutMs / 8))
    timer.unref()
    try {
      return await work()
    } finally {
      clearTimeout(timer)
      release()
    }
  }
}

const noAnswer = (node: ClusterNode, timeoutMs: number, cause: unknown): AppError => {
  const late = cause instanceof DOMException && cause.name === 'TimeoutError'
  const what = late
    ? `did not answer within ${timeoutMs / 1000} s`
    : `sent an invalid answer: ${String(cause)}`
  return new AppError('unavailable', `Node ${node.id} (${node.host}) ${what}.`, {
    hint: `Try: ssh ${node.host} uptime`,
    details: { node: node.id, failure: late ? 'timed-out' : 'unreachable' },
    cause,
  })
}
