import { setTimeout as sleep } from 'node:timers/promises'
import type { Cluster } from '../../cluster/cluster.ts'
import type { ClusterNode } from '../../cluster/inventory.ts'
import { type HeldEnd, holdCommand } from '../../cluster/remote/hold.ts'
import type { RemoteCommand } from '../../cluster/remote/shim.ts'
import { createDeadline } from '../../jobs/deadline.ts'
import { toAppError } from '../../jobs/errors.ts'
import type { AttachRequest, Blobs, Exit, Outcome, StopReason } from '../../ports.ts'
import type { KeepLimits } from '../local/protocol.ts'
import { type Collected, collect } from './collect.ts'
import { type Memo, NO_MEMO, openMemo } from './memo.ts'
import { createReporter, type Reporter } from './reporter.ts'
import { signalOf } from './signals.ts'

export interface RunContext {
  cluster: Cluster
  blobs: Blobs
  keep: KeepLimits
  graceSeconds: number
  routed: boolean
  /** Seals what waits on a node for a later daemon. */
  memoKey: Buffer
}

export interface RunPlace {
  node: ClusterNode
  reason: string
  /** Absent when it was started by an earlier daemon. */
  command?: { command: RemoteCommand; memo: Memo }
  hasWorkspace?: boolean
  begun: number
}

const COLLECT_MS = 120_000
const CANCEL_PAUSE_MS = 500
const MEMO_PAUSE_MS = 1000

/** One name for a run on its node: a kept machine sees several. */
export const runId = (run: AttachRequest): string => `${run.machine.id}.${run.job.id}`

/** Stays with a command on a node to its end, or lets go of it. */
export const followRun = async (
  context: RunContext,
  run: AttachRequest,
  place: RunPlace,
): Promise<Outcome> => {
  const { cluster } = context
  const { node, command } = place
  const letGo = new AbortController()
  const onDetach = (): void => letGo.abort(new Error('the daemon leaves'))
  if (run.detach.aborted) return { kind: 'detached' }
  run.detach.addEventListener('abort', onDetach, { once: true })
  if (run.stop.aborted && command) {
    run.detach.removeEventListener('abort', onDetach)
    return neverStarted(run, place)
  }
  let memo: Memo
  try {
    memo = command?.memo ?? (await memoFrom(context, run, node))
  } catch (error) {
    run.detach.removeEventListener('abort', onDetach)
    if (run.detach.aborted) return { kind: 'detached' }
    return { kind: 'lost', error: toAppError(error) }
  }
  let startedAt = run.job.startedAt ?? undefined
  const startedReports: Promise<void>[] = []
  const reporter = createReporter({ sink: run.sink, memo, outputBytes: run.job.outputBytes, now: Date.now })
  const stopper = createStopper(context, run, node, letGo.signal)
  try {
    const end = await holdCommand({
      cluster,
      node,
      id: runId(run),
      ...(command && { command: command.command }),
      from: run.sink.position,
      onStarted: () => {
        if (startedReports.length > 0) return
        startedAt ??= Date.now()
        startedReports.push(run.sink.started(startedAt))
      },
      onOutput: reporter.push,
      onAlive: run.sink.heartbeat,
      ready: reporter.ready,
      signal: letGo.signal,
    })
    await Promise.all(startedReports)
    await reporter.end()
    return await conclude(context, run, { place, memo, end, reporter, startedAt, stopped: stopper.kind() })
  } catch (error) {
    if (letGo.signal.aborted) {
      await reporter.end().catch(() => undefined)
      return { kind: 'detached' }
    }
    return { kind: startedAt === undefined ? 'not-started' : 'lost', error: toAppError(error) }
  } finally {
    stopper.end()
    run.detach.removeEventListener('abort', onDetach)
  }
}

interface Ending {
  place: RunPlace
  memo: Memo
  end: HeldEnd
  reporter: Reporter
  startedAt: number | undefined
  stopped: StopReason['kind'] | undefined
}

const conclude = async (context: RunContext, run: AttachRequest, ending: Ending): Promise<Outcome> => {
  const { end, place, memo } = ending
  if (end.kind === 'superseded') return { kind: 'detached' }
  if (end.kind === 'not-started')
    return ending.stopped ? neverStarted(run, place) : { kind: 'not-started', error: end.error }
  if (end.kind === 'lost') {
    const unknown = ending.startedAt === undefined && run.job.startedAt === null
    return { kind: unknown ? 'not-started' : 'lost', error: end.error }
  }
  const running = performance.now()
  const collected = await collectFrom(context, run, place, memo)
  const stopped =
    end.how === 'timeout' ? 'timeout' : end.how === 'cancel' ? (ending.stopped ?? 'cancel') : null
  const endedAt = end.endedAt || Date.now()
  const startedAt = ending.startedAt ?? (end.startedAt || endedAt)
  const told = ending.reporter.agent()
  const exit: Exit = {
    ...signalOf(end.code),
    stopped,
    startedAt,
    endedAt: Math.max(startedAt, endedAt),
    ...collected,
    usage: told.usage,
    isolation: memo.isolation,
    limitsHit: stopped === 'timeout' ? [`time: it ran longer than ${memo.timeoutSeconds} s`] : [],
    agentError: told.error,
    phases: { run: Math.round(running - place.begun), collect: Math.round(performance.now() - running) },
    executedOn: { node: place.node.id, because: place.reason },
  }
  return { kind: 'exit', exit }
}

const collectFrom = async (
  context: RunContext,
  run: AttachRequest,
  place: RunPlace,
  memo: Memo,
): Promise<Collected> => {
  const deadline = createDeadline([run.detach], COLLECT_MS)
  try {
    return await collect({
      cluster: context.cluster,
      target: await context.cluster.target(place.node, deadline.signal),
      blobs: context.blobs,
      manifest: run.manifest,
      workspaceId: run.machine.id,
      hasWorkspace: place.hasWorkspace ?? memo.hasWorkspace ?? false,
      keep: context.keep,
      signal: deadline.signal,
    })
  } finally {
    deadline.clear()
  }
}

/** Asks the node again and again to end the command until it says that it did. */
const createStopper = (
  { cluster, graceSeconds }: RunContext,
  run: AttachRequest,
  node: ClusterNode,
  letGo: AbortSignal,
): { kind(): StopReason['kind'] | undefined; end(): void } => {
  const over = new AbortController()
  let kind: StopReason['kind'] | undefined
  const insist = async (): Promise<void> => {
    kind = (run.stop.reason as StopReason).kind
    while (!over.signal.aborted && !letGo.aborted) {
      try {
        const target = await cluster.target(node, over.signal)
        const left = await cluster.shim.cancel(runId(run), { target, signal: over.signal, graceSeconds })
        if (left.length === 0) return
      } catch {
        // The node is away: the command there cannot be reached until it is back.
      }
      await sleep(CANCEL_PAUSE_MS, undefined, { signal: over.signal }).catch(() => undefined)
    }
  }
  const onStop = (): void => void insist()
  if (run.stop.aborted) onStop()
  else run.stop.addEventListener('abort', onStop, { once: true })
  return {
    kind: () => kind,
    end: () => {
      over.abort(new Error('it has ended'))
      run.stop.removeEventListener('abort', onStop)
    },
  }
}

/** Insists: without it nobody knows what must not be shown. */
const memoFrom = async (
  { cluster, memoKey }: RunContext,
  run: AttachRequest,
  node: ClusterNode,
): Promise<Memo> => {
  for (;;) {
    try {
      const target = await cluster.target(node, run.detach)
      const text = await cluster.shim.memoOf(runId(run), { target, signal: run.detach })
      return text === '' ? NO_MEMO : openMemo(text, memoKey)
    } catch (error) {
      if (!toAppError(error).retryable) throw error
      await sleep(MEMO_PAUSE_MS, undefined, { signal: run.detach })
    }
  }
}

const neverStarted = (run: AttachRequest, place: RunPlace): Outcome => {
  const now = Date.now()
  return {
    kind: 'exit',
    exit: {
      code: null,
      signal: null,
      stopped: (run.stop.reason as StopReason).kind,
      startedAt: now,
      endedAt: now,
      artifacts: [],
      skippedArtifacts: [],
      patch: null,
      usage: null,
      isolation: place.command?.memo.isolation ?? [],
      limitsHit: [],
      agentError: null,
      phases: {},
      executedOn: { node: place.node.id, because: place.reason },
    },
  }
}
