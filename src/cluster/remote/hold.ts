import { setTimeout as sleep } from 'node:timers/promises'
import { AppError, toAppError } from '../../jobs/errors.ts'
import type { Cluster } from '../cluster.ts'
import type { ClusterNode } from '../inventory.ts'
import type { SshTarget } from '../ssh/arguments.ts'
import { sshFailureOf } from '../ssh/errors.ts'
import type { FollowOptions, RemoteCommand, RemoteEnd } from './shim.ts'

export interface HoldOptions {
  cluster: Cluster
  node: ClusterNode
  id: string
  /** Absent: it was sent before, and is only followed. */
  command?: RemoteCommand
  /** It is known to have started; so is one without `command` unless told otherwise. */
  hasStarted?: boolean
  /** The life that the node was in when it was sent, as far as is known. */
  boot?: string | undefined
  /** Bytes of output already taken over. */
  from: number
  onStarted(fresh: boolean): void
  onOutput(stream: 'stdout' | 'stderr', data: Buffer): void
  /** So many bytes were printed here that the node has not kept. */
  onDropped?(bytes: number): void
  onAlive?(): void
  ready?(): Promise<void> | undefined
  /** It may still be on its way to a node that does not answer. */
  onAdrift?(): Promise<void>
  /** How long to ask a node that was given the command and fell silent before it said that it has started. */
  unsureMs?: number
  /** Lets go: the command lives on. */
  signal: AbortSignal
}

export type HeldEnd =
  | Extract<RemoteEnd, { kind: 'exit' | 'superseded' }>
  /** It certainly did not run: it may be run elsewhere. */
  | { kind: 'not-started'; error: AppError }
  /** It may have run, and how it ended cannot be known. */
  | { kind: 'lost'; error: AppError }

const FIRST_PAUSE_MS = 200
const LONGEST_PAUSE_MS = 5_000
/** Nobody waits longer for a node that went away at the very moment a command was handed to it. */
const UNSURE_MS = 60_000
/** For what somebody has to put right first. */
const HOPELESS_PAUSE_MS = 30_000

/**
 * Stays with a command through cut connections: sends it once, asks for it again and again, until it ends or nobody
 * wants to know any more. What the node can have heard of is not sent a second time: the node is asked, and one that
 * does not know it is told by that not to start it any more, however late the request arrives.
 */
export const holdCommand = async (options: HoldOptions): Promise<HeldEnd> => {
  const { cluster, node, signal } = options
  let received = options.from
  let attaching = options.command === undefined
  let started = options.hasStarted ?? attaching
  let heard = attaching
  let { boot } = options
  let bootNow: string | undefined
  let pause = FIRST_PAUSE_MS
  let unsureSince: number | undefined
  /** Requests of ours that the node may get yet, after those that it has answered since. */
  let adrift = 0
  for (let attempt = 0; ; attempt++) {
    signal.throwIfAborted()
    const before = { heard, attaching }
    const follow = (target: SshTarget): FollowOptions => ({
      target,
      from: received,
      signal,
      onSent: of => {
        heard = true
        bootNow = of
        if (!before.attaching) boot = of
      },
      onStarted: fresh => {
        started = true
        attaching = true
        pause = FIRST_PAUSE_MS
        cluster.succeeded(node, target)
        options.onStarted(fresh)
      },
      onOutput: (stream, data) => {
        received += data.length
        options.onOutput(stream, data)
      },
      onDropped: bytes => {
        received += bytes
        options.onDropped?.(bytes)
      },
      ...(options.onAlive && { onAlive: options.onAlive }),
      ...(options.ready && { ready: options.ready }),
    })
    const end = await once(options, follow, attaching).catch((error: unknown) => {
      if (signal.aborted || !heard) throw error
      return { kind: 'lost', reason: toAppError(error).message } as const
    })
    if (end.kind === 'superseded' && adrift > 0) {
      // By one of our own that came late, and that nobody listens to.
      adrift--
      continue
    }
    if (end.kind === 'not-started' && !started && before.attaching)
      return isAnother(boot, bootNow) ? mayHaveRun(node) : neverArrived(node)
    if (end.kind !== 'disconnected') return settled(end, started)
    if (end.sent) {
      adrift++
      attaching = true
    } else heard = before.heard
    const hopeless = isHopeless(end.error)
    if (!heard && (hopeless || attempt >= cluster.config.ssh.retries))
      return { kind: 'not-started', error: end.error }
    if (heard && !started) {
      if (unsureSince === undefined) await options.onAdrift?.()
      unsureSince ??= performance.now()
      if (performance.now() - unsureSince > (options.unsureMs ?? UNSURE_MS))
        return { kind: 'lost', error: unsure(node, end.error) }
    }
    // What may run there is not given up for a refused login: its own clock ends it, and somebody may let us in again.
    await sleep(pause, undefined, { signal })
    pause = Math.min(pause * 2, hopeless ? HOPELESS_PAUSE_MS : LONGEST_PAUSE_MS)
  }
}

const isAnother = (boot: string | undefined, now: string | undefined): boolean =>
  boot !== undefined && now !== undefined && boot !== now

/** Trying again changes nothing until somebody has put something right. */
export const isHopeless = (error: unknown): boolean => {
  const failure = sshFailureOf(error)
  return failure === 'auth-failed' || failure === 'host-key-changed' || failure === 'host-key-unknown'
}

const once = async (
  options: HoldOptions,
  follow: (target: SshTarget) => FollowOptions,
  attaching: boolean,
): Promise<RemoteEnd> => {
  const { cluster, node, signal, command } = options
  const begun = cluster.now()
  let target: SshTarget | undefined
  try {
    target = await cluster.target(node, signal)
    const end =
      command !== undefined && !attaching
        ? await cluster.shim.run(command, follow(target))
        : await cluster.shim.attach(options.id, follow(target))
    if (end.kind === 'disconnected') cluster.failed(node, end.error, target, begun)
    if (end.kind === 'not-started' && end.fault)
      cluster.failed(node, new AppError('unavailable', end.reason), target, begun)
    return end
  } catch (error) {
    if (signal.aborted || !(error instanceof AppError) || error.code === 'invalid') throw error
    cluster.failed(node, error, target, begun)
    return { kind: 'disconnected', error, sent: false }
  }
}

const unsure = (node: ClusterNode, cause: AppError): AppError =>
  new AppError(
    'unavailable',
    `node ${node.id} fell silent while the command was handed to it, so whether it ran is not known: ${cause.message}`,
    {
      hint: 'Look at the node before you submit it again. What runs there is ended when the node is back.',
      retryable: false,
      cause,
    },
  )

const neverArrived = (node: ClusterNode): HeldEnd => ({
  kind: 'not-started',
  error: new AppError(
    'unavailable',
    `the command never arrived at node ${node.id}, and is not started there any more`,
  ),
})

/** What was written last before a power cut is not there after it. */
const mayHaveRun = (node: ClusterNode): HeldEnd => ({
  kind: 'lost',
  error: new AppError(
    'unavailable',
    `node ${node.id} was restarted after the command was sent to it and has no record of it, so whether it ran is not known`,
    { hint: 'Look at the node, then submit again: nothing was started a second time.', retryable: false },
  ),
})

const settled = (end: Exclude<RemoteEnd, { kind: 'disconnected' }>, started: boolean): HeldEnd => {
  if (end.kind === 'not-started' && !started)
    return { kind: 'not-started', error: new AppError('unavailable', end.reason) }
  if (end.kind === 'lost' || end.kind === 'not-started') {
    const hint = 'Look at the node, then submit again: nothing was started a second time.'
    return { kind: 'lost', error: new AppError('unavailable', end.reason, { hint, retryable: false }) }
  }
  return end
}
