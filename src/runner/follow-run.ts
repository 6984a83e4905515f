import { setTimeout as sleep } from 'node:timers/promises'
import { AppError, toAppError } from '../jobs/errors.ts'
import type { RunnerHost } from './channel.ts'
import { type FollowHandlers, followOnce, type RunEnd, type StartRequest } from './client.ts'

export interface FollowRunOptions {
  readonly host: RunnerHost
  readonly run: string
  /** Absent: it was sent before and is only followed. */
  readonly start?: Omit<StartRequest, 'from'>
  /** It is known to have started; assumed of a run without `start`. */
  readonly hasStarted?: boolean
  /** The boot of the machine at the time the run was sent, if known. */
  readonly bootId?: string | undefined
  /** Bytes of output that the daemon has. */
  readonly from: number
  onStarted: NonNullable<FollowHandlers['onStarted']>
  onOutput: FollowHandlers['onOutput']
  onProgress?: FollowHandlers['onProgress']
  onDropped?: FollowHandlers['onDropped']
  onHeartbeat?: FollowHandlers['onHeartbeat']
  ready?: FollowHandlers['ready']
  /** The request may still be on its way to a machine that does not answer. */
  onUndelivered?(): Promise<void>
  /** How long to ask a machine that received the request and fell silent before it confirmed the start. */
  readonly unsureMs?: number
  /** Detaches: the command lives on. */
  readonly signal: AbortSignal
}

export type FollowedEnd =
  | Extract<RunEnd, { kind: 'exit' | 'superseded' }>
  /** It certainly did not run: it may run elsewhere. */
  | { kind: 'not-started'; error: AppError }
  /** It may have run; how it ended cannot be known. */
  | { kind: 'lost'; error: AppError }

const FIRST_PAUSE_MS = 200
const LONGEST_PAUSE_MS = 5_000
/** For errors that a person must fix first, such as a refused login. */
const LONG_PAUSE_MS = 30_000
const UNSURE_MS = 60_000

/**
 * Starts a run at most once and follows it through cut connections. The start request is sent once. After a cut the
 * runner is only asked: a runner that does not know the run bars it, so a request that arrives later starts nothing.
 */
export const followRun = async (options: FollowRunOptions): Promise<FollowedEnd> => {
  const { host, signal, start } = options
  let position = options.from
  let following = start === undefined
  let started = options.hasStarted ?? following
  let sent = following
  let { bootId } = options
  let bootIdNow: string | undefined
  let pause = FIRST_PAUSE_MS
  let unsureSince: number | undefined
  /** Number of requests that were sent on lost connections and may still arrive at the machine. */
  let late = 0
  for (let attempt = 0; ; attempt++) {
    signal.throwIfAborted()
    const before = { sent, following }
    const end = await connectAndFollow(host, signal, (channel, succeeded) =>
      followOnce(
        channel,
        start && !following
          ? { ...start, from: position }
          : { kind: 'follow', run: options.run, from: position },
        {
          signal,
          ready: options.ready,
          onSent: id => {
            sent = true
            bootIdNow = id
            if (!before.following) bootId = id
          },
          onStarted: (fresh, at) => {
            started = true
            following = true
            pause = FIRST_PAUSE_MS
            succeeded()
            options.onStarted(fresh, at)
          },
          onOutput: (stream, data, at) => {
            position += data.length
            options.onOutput(stream, data, at)
          },
          ...(options.onProgress && { onProgress: options.onProgress }),
          onDropped: bytes => {
            position += bytes
            options.onDropped?.(bytes)
          },
          ...(options.onHeartbeat && { onHeartbeat: options.onHeartbeat }),
        },
      ),
    ).catch((error: unknown) => {
      if (signal.aborted || !sent) throw error
      return { kind: 'lost', reason: toAppError(error).message } as const
    })
    if (end.kind === 'superseded' && late > 0) {
      // A delayed request of this daemon, whose answer is not read.
      late--
      continue
    }
    if (end.kind === 'not-started' && !started && before.following)
      return isAnotherBoot(bootId, bootIdNow) ? mayHaveRun(host) : neverArrived(host, end.error)
    if (end.kind !== 'disconnected') return toFollowedEnd(end, started)
    if (end.sent) {
      late++
      following = true
    } else sent = before.sent
    if (!sent && (!end.error.retryable || attempt >= host.retries))
      return { kind: 'not-started', error: end.error }
    if (sent && !started) {
      if (unsureSince === undefined) await options.onUndelivered?.()
      unsureSince ??= performance.now()
      if (performance.now() - unsureSince > (options.unsureMs ?? UNSURE_MS))
        return { kind: 'lost', error: unsure(host, end.error) }
    }
    // A command that may run is not given up for a refused login: its own clock ends it, and the login may be fixed.
    await sleep(pause, undefined, { signal })
    pause = Math.min(pause * 2, end.error.retryable ? LONGEST_PAUSE_MS : LONG_PAUSE_MS)
  }
}

const connectAndFollow = async (
  host: RunnerHost,
  signal: AbortSignal,
  follow: (channel: Awaited<ReturnType<RunnerHost['connect']>>, succeeded: () => void) => Promise<RunEnd>,
): Promise<RunEnd> => {
  let connection: Awaited<ReturnType<RunnerHost['connect']>>
  try {
    connection = await host.connect(signal)
  } catch (error) {
    // A machine that no longer exists, or can never run a command, is not asked again.
    const isFinal = error instanceof AppError && ['invalid', 'not_found', 'unsupported'].includes(error.code)
    if (signal.aborted || !(error instanceof AppError) || isFinal) throw error
    host.failed(error)
    return { kind: 'disconnected', error, sent: false }
  }
  const end = await follow(connection, connection.succeeded)
  if (end.kind === 'disconnected') connection.failed(end.error)
  if (end.kind === 'not-started' && end.fault) connection.failed(new AppError('unavailable', end.reason))
  return end
}

const isAnotherBoot = (then: string | undefined, now: string | undefined): boolean =>
  then !== undefined && now !== undefined && then !== now

const LOOK = 'Look at the machine, then submit again: nothing was started a second time.'

const unsure = ({ name }: RunnerHost, cause: AppError): AppError =>
  new AppError(
    'unavailable',
    `${name} fell silent while it received the command, so whether it ran is not known: ${cause.message}`,
    {
      hint: 'Look at the machine before you submit again. Deputy ends what runs there when it is back.',
      retryable: false,
      cause,
    },
  )

const neverArrived = (
  { name }: RunnerHost,
  error = new AppError('unavailable', `the command never arrived at ${name} and cannot start there any more`),
): FollowedEnd => ({ kind: 'not-started', error })

/** A power cut may have destroyed the record of a command that ran. */
const mayHaveRun = ({ name }: RunnerHost): FollowedEnd => ({
  kind: 'lost',
  error: new AppError(
    'unavailable',
    `${name} was restarted after it received the command and has no record of it, so whether it ran is not known`,
    { hint: LOOK, retryable: false },
  ),
})

const toFollowedEnd = (end: Exclude<RunEnd, { kind: 'disconnected' }>, started: boolean): FollowedEnd => {
  if (end.kind === 'not-started' && !started)
    return { kind: 'not-started', error: end.error ?? new AppError('unavailable', end.reason) }
  if (end.kind !== 'lost' && end.kind !== 'not-started') return end
  const error = end.error ?? new AppError('unavailable', end.reason, { hint: LOOK, retryable: false })
  return { kind: 'lost', error }
}
