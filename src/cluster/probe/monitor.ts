import { setMaxListeners } from 'node:events'
import { abortable, createDeadline } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import type { ClusterNode } from '../inventory.ts'
import { type Health, overloadReason, type Thresholds } from './health.ts'
import type { ProbeReport } from './report.ts'

export interface NodeStatus {
  id: string
  health: Health
  /** Why it is not healthy. */
  reason: string | undefined
  /** When it became what it is. */
  since: number
  report: ProbeReport | undefined
  latencyMs: number
  /** When it was looked at last. */
  at: number
  error?: AppError
}

export interface MonitorOptions {
  /** One look; throws an AppError when the node cannot be asked. */
  probe: (node: ClusterNode, signal: AbortSignal) => Promise<{ report: ProbeReport; latencyMs: number }>
  thresholds: Thresholds
  timeoutMs: number
  /** How long a look counts as fresh. */
  freshMs?: number
  parallel?: number
  now?: () => number
}

export interface Monitor {
  /** What is known now, without waiting; old knowledge is renewed behind the caller's back. */
  peek(node: ClusterNode): NodeStatus | undefined
  /** Looks at every node at once; no node takes longer than the time-out, whatever it does. */
  look(nodes: readonly ClusterNode[], options?: { force?: boolean }): Promise<NodeStatus[]>
  /** What a command learned on the way. */
  unreachable(node: ClusterNode, error: AppError): void
  forget(id: string): void
  close(): void
}

/** Most nodes answer in this time. */
const SLOT_MS = 500
/** Opening sessions takes processor time that the command which is about to be sent can use better. */
const RENEW_PAUSE_MS = 25

export const createMonitor = (options: MonitorOptions): Monitor => {
  const { freshMs = 5_000, parallel = 64, now = Date.now } = options
  const known = new Map<string, NodeStatus>()
  const running = new Map<string, Promise<NodeStatus>>()
  const closing = new AbortController()
  // Every look listens to it.
  setMaxListeners(0, closing.signal)
  const queue: (() => void)[] = []
  let active = 0

  /** For those who work. One that only waits for its node soon makes room, or a few dead nodes would hold up all. */
  const slot = async <T>(work: () => Promise<T>): Promise<T> => {
    if (active >= parallel) await new Promise<void>(resolve => queue.push(resolve))
    active++
    let left = false
    const leave = (): void => {
      if (left) return
      left = true
      active--
      queue.shift()?.()
    }
    const timer = setTimeout(leave, Math.min(SLOT_MS, options.timeoutMs / 8))
    timer.unref()
    try {
      closing.signal.throwIfAborted()
      return await work()
    } finally {
      clearTimeout(timer)
      leave()
    }
  }

  const record = (status: Omit<NodeStatus, 'since' | 'at'>): NodeStatus => {
    const before = known.get(status.id)
    const since = before?.health === status.health ? before.since : now()
    const next = { ...status, since, at: now() }
    known.set(status.id, next)
    return next
  }

  const ask = async (node: ClusterNode): Promise<NodeStatus> => {
    try {
      const { report, latencyMs } = await slot(() => timely(node))
      const reason = overloadReason(report, options.thresholds)
      return record({ id: node.id, health: reason ? 'overloaded' : 'healthy', reason, report, latencyMs })
    } catch (error) {
      return fail(node, error instanceof AppError ? error : noAnswer(node, options.timeoutMs, error))
    }
  }

  /** The time counts from here, not from when it began to wait; and a probe may not mind its signal. */
  const timely = async (node: ClusterNode): ReturnType<MonitorOptions['probe']> => {
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

  const renew = (node: ClusterNode): Promise<NodeStatus> => {
    const current = running.get(node.id)
    if (current) return current
    const asked = ask(node).finally(() => running.delete(node.id))
    running.set(node.id, asked)
    return asked
  }

  const renewing = new Set<string>()
  const renewSoon = (node: ClusterNode): void => {
    if (renewing.has(node.id)) return
    renewing.add(node.id)
    const timer = setTimeout(() => {
      renewing.delete(node.id)
      if (!closing.signal.aborted) void renew(node)
    }, RENEW_PAUSE_MS)
    timer.unref()
  }

  const isFresh = (status: NodeStatus | undefined): status is NodeStatus =>
    status !== undefined && now() - status.at < freshMs

  return {
    peek: node => {
      const status = known.get(node.id)
      if (!isFresh(status)) renewSoon(node)
      return status
    },
    look: (nodes, { force = false } = {}) =>
      Promise.all(
        nodes.map(node => {
          const status = known.get(node.id)
          return !force && isFresh(status) ? status : renew(node)
        }),
      ),
    unreachable: (node, error) => {
      fail(node, error)
    },
    forget: id => {
      known.delete(id)
    },
    close: () => closing.abort(new AppError('unavailable', 'the monitor was closed')),
  }
}

const noAnswer = (node: ClusterNode, timeoutMs: number, cause: unknown): AppError => {
  const late = cause instanceof DOMException && cause.name === 'TimeoutError'
  const what = late ? `did not answer within ${timeoutMs / 1000} s` : `answered nonsense: ${String(cause)}`
  return new AppError('unavailable', `node ${node.id} (${node.host}) ${what}`, {
    hint: `Try it by hand: ssh ${node.host} uptime`,
    details: { node: node.id, failure: late ? 'timed-out' : 'unreachable' },
    cause,
  })
}
