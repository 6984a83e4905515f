import { setTimeout as sleep } from 'node:timers/promises'
import type { Cluster } from '../../cluster/cluster.ts'
import type { ClusterNode } from '../../cluster/inventory.ts'
import { type HeldEnd, holdCommand, isHopeless } from '../../cluster/remote/hold.ts'
import type { RemoteCommand } from '../../cluster/remote/shim.ts'
import { createDeadline } from '../../jobs/deadline.ts'
import { AppError, toAppError } from '../../jobs/errors.ts'
import type { AttachRequest, Blobs, Exit, Outcome, StopReason } from '../../ports.ts'
import { redactNames } from '../local/redact-names.ts'
import type { KeepLimits } from '../local/shim-protocol.ts'
import { type Collected, collect, leavesSomething, nothingLeft } from './collect.ts'
import { type Memo, NO_MEMO, openMemo } from './memo.ts'
import { ADRIFT, recordedBoot } from './place.ts'
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
  begun: number
}

const COLLECT_MS = 120_000
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 5_000
/** For what somebody has to put right first. */
const HOPELESS_PAUSE_MS = 30_000

/** One name for a run on its node: a kept machine sees several, and a job that never arrived there comes again. */
export const runId = ({ machine, job }: AttachRequest): string =>
  `${machine.id}.${job.id}${job.attempts > 1 ? `.${job.attempts}` : ''}`

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
      ...(command
        ? { command: command.command }
        : {
            hasStarted: run.job.startedAt !== null,
            unsureMs: patienceMs(run),
            boot: recordedBoot(run.machine),
          }),
      from: run.sink.position,
      onStarted: () => {
        if (startedReports.length > 0) return
        startedAt ??= Date.now()
        startedReports.push(run.sink.started(startedAt))
        // What was chosen before there was a connection was written down without the life of the node.
        const boot = cluster.ssh.boot(node.id)
        if (command && boot !== undefined && boot !== recordedBoot(run.machine))
          startedReports.push(run.remember({ boot }).catch(() => undefined))
      },
      onOutput: reporter.push,
      onDropped: reporter.skip,
      onAlive: run.sink.heartbeat,
      ready: reporter.ready,
      // Whoever cleans up there then sees to it that it does not start any more.
      onAdrift: () => run.remember({ [ADRIFT]: runId(run) }).catch(() => undefined),
      signal: letGo.signal,
    })
    stopper.end()
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
  if (end.kind === 'superseded') return { kind: 'lost', error: isFollowedElsewhere(place.node) }
  if (end.kind === 'not-started')
    return ending.stopped ? neverStarted(run, place) : { kind: 'not-started', error: end.error }
  if (end.kind === 'lost') return end
  const running = performance.now()
  const collected = await collectFrom(context, run, place)
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
    artifacts: redactNames(collected.artifacts, ending.reporter.redact),
    skippedArtifacts: redactNames(collected.skippedArtifacts, ending.reporter.redact),
    usage: told.usage,
    isolation: memo.isolation,
    limitsHit: stopped === 'timeout' ? [`time: it ran longer than ${memo.timeoutSeconds} s`] : [],
    agentError: told.error,
    phases: { run: Math.round(running - place.begun), collect: Math.round(performance.now() - running) },
    executedOn: { node: place.node.id, because: place.reason },
  }
  return { kind: 'exit', exit }
}

const collectFrom = async (context: RunContext, run: AttachRequest, place: RunPlace): Promise<Collected> => {
  const { cluster, blobs, keep } = context
  const { manifest, machine } = run
  if (!leavesSomething(manifest)) return nothingLeft()
  const deadline = createDeadline([run.detach], COLLECT_MS)
  const { signal } = deadline
  let pause = FIRST_PAUSE_MS
  try {
    for (;;) {
      try {
        const target = await cluster.target(place.node, signal)
        return await collect({
          ...{ cluster, target, blobs, jobId: run.job.id, manifest, workspaceId: machine.id, keep, signal },
        })
      } catch (error) {
        // The next daemon collects; that the command has ended is on the node.
        if (run.detach.aborted) throw error
        const { message, retryable } = toAppError(error)
        if (signal.aborted || !retryable) return nothingLeft(message)
        await sleep(pause, undefined, { signal }).catch(() => undefined)
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS)
      }
    }
  } finally {
    deadline.clear()
  }
}

const isFollowedElsewhere = (node: ClusterNode): AppError =>
  new AppError('conflict', `Another daemon has taken over the command on node ${node.id}.`, {
    hint: 'Is the home of Deputy a copy of that of another computer? Delete cluster/owner in it and start again.',
    retryable: false,
  })

/** Asks the node again and again to end the command until it has: a request to start it may be on its way still. */
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
    let pause = FIRST_PAUSE_MS
    while (!over.signal.aborted && !letGo.aborted) {
      try {
        const target = await cluster.target(node, over.signal)
        await cluster.shim.cancel(runId(run), { target, signal: over.signal, graceSeconds })
      } catch {
        // The node is away: the command there cannot be reached until it is back.
      }
      await sleep(pause, undefined, { signal: over.signal }).catch(() => undefined)
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS)
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

/** By then the command's own clock has ended it, whatever became of it. */
const patienceMs = (run: AttachRequest): number => run.job.timeoutSeconds * 1000 + COLLECT_MS

/** Insists: without it nobody knows what must not be shown. */
const memoFrom = async (
  { cluster, memoKey }: RunContext,
  run: AttachRequest,
  node: ClusterNode,
): Promise<Memo> => {
  const until = performance.now() + patienceMs(run)
  for (let pause = FIRST_PAUSE_MS; ; ) {
    try {
      const target = await cluster.target(node, run.detach)
      const text = await cluster.shim.memoOf(runId(run), { target, signal: run.detach })
      return text === '' ? NO_MEMO : openMemo(text, memoKey)
    } catch (error) {
      const hopeless = isHopeless(error)
      if ((!hopeless && !toAppError(error).retryable) || performance.now() > until) throw error
      await sleep(pause, undefined, { signal: run.detach })
      pause = Math.min(pause * 2, hopeless ? HOPELESS_PAUSE_MS : LONGEST_PAUSE_MS)
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
