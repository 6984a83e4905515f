import { setTimeout as delay } from 'node:timers/promises'
import { AppError } from '../../jobs/errors.ts'
import type { Exchanged, ExchangeHandlers, RunnerHost } from '../../runner/channel.ts'
import type { FollowRequest, StartRequest } from '../../runner/client.ts'
import { readStarted } from './job-state-files.ts'
import { endFromFiles, type RunEndAnswer } from './run-end.ts'
import type { ShimLink } from './shim-link.ts'
import type { Frame } from './spool-frames.ts'
import { openSpoolReader } from './spool-reader.ts'

export interface ShimHostOptions {
  /** The directory of the run, where its shim writes the log and the result. */
  readonly dir: string
  /** Absent when no shim holds the machine: the files then tell how the run ended. */
  readonly link: ShimLink | undefined
  /** Bytes of output after which the reader may pause. */
  readonly head: number
  /** Why a living shim cannot be asked. */
  problem(): string | undefined
}

export interface ShimHost extends RunnerHost {
  /** The shim is leaving or full. Nothing was started, so another shim may try. */
  readonly isRefused: boolean
  /** The shim may have received the run. */
  readonly isSent: boolean
}

/** The runner of a local machine. Its output is in the files of its shim, also when the shim has ended. */
export const shimHost = (options: ShimHostOptions): ShimHost => {
  const { link } = options
  let isRefused = false
  let isSent = false

  const start = async (request: StartRequest, handlers: ExchangeHandlers): Promise<Exchanged> => {
    link?.machines.set(request.workspace, request.run)
    isSent = true
    const end = await follow(options, request, handlers)
    isRefused = end.kind === 'refused' && !end.fault && end.error?.code === 'unavailable'
    return ANSWERED
  }

  return {
    name: 'this computer',
    retries: 0,
    get isRefused() {
      return isRefused
    },
    get isSent() {
      return isSent
    },
    failed: () => {},
    connect: async () => ({
      succeeded: () => {},
      failed: () => {},
      exchange: async ([request], handlers) => {
        if (request?.kind === 'start') return start(request, handlers)
        if (request?.kind === 'follow') await follow(options, request, handlers)
        else if (request?.kind === 'stop') link?.send(request)
        else throw new AppError('internal', `A shim does not answer '${request?.kind}'.`)
        return ANSWERED
      },
    }),
  }
}

const ANSWERED: Exchanged = { cut: undefined, sent: true }
const NOTHING = Buffer.alloc(0)
/** Pause after a batch this large: the job prints faster than people read, and the middle may be dropped. */
const EAGER_BYTES = 128 * 1024
const PAUSE_MS = 40

/** Sends the request, and answers it with the log of the run and its end. */
const follow = async (
  { dir, link, head, problem }: ShimHostOptions,
  request: StartRequest | FollowRequest,
  handlers: ExchangeHandlers,
): Promise<RunEndAnswer> => {
  const { run, from } = request
  const { signal, onAnswer, onSent, ready } = handlers
  const events = listen(link, run, handlers)
  const reader = openSpoolReader(dir, from)
  let offset = from
  try {
    link?.send(request)
    onSent?.(undefined)
    // A shim does not repeat `started`.
    if (request.kind === 'follow') events.startedAt = await readStarted(dir)
    let isStartReported = false
    const reportStart = (): void => {
      if (isStartReported || events.startedAt === undefined) return
      isStartReported = true
      onAnswer({ kind: 'started', run, fresh: request.kind === 'start', at: events.startedAt }, NOTHING)
    }
    for (;;) {
      signal.throwIfAborted()
      const { hasEnded } = events
      reportStart()
      const frames = await reader.next()
      // The start comes over the socket and the output in files, which may be sooner: the start is reported first.
      if (hasEnded || frames.length > 0) events.startedAt ??= await readStarted(dir)
      reportStart()
      const before = offset
      offset = print(frames, { run, offset, onAnswer })
      if (frames.length === 0 && hasEnded) break
      if (frames.length === 0) await events.next()
      else await ready?.()
      if (offset - before >= EAGER_BYTES && offset > head && !hasEnded) await delay(PAUSE_MS)
    }
  } finally {
    events.stop()
    await reader.close()
  }
  // A shim does not know a run whose result it has written.
  const isUnknown = request.kind === 'follow' && events.end?.kind === 'refused' && !events.end.fault
  const end = isUnknown ? undefined : events.end
  const told = end ?? (await endFromFiles(run, dir, problem()))
  onAnswer(told, NOTHING)
  return told
}

/** Answers with frames of the log; returns the offset after them. */
const print = (
  frames: readonly Frame[],
  { run, offset, onAnswer }: { run: string; offset: number; onAnswer: ExchangeHandlers['onAnswer'] },
): number => {
  for (const { kind, offset: start, data, at } of frames) {
    if (start > offset) onAnswer({ kind: 'dropped', run, offset, count: start - offset }, NOTHING)
    offset = start
    if (kind === 'progress') onAnswer({ kind, run, text: data.toString('utf8') }, NOTHING)
    else onAnswer({ kind: 'output', run, stream: kind, offset, bytes: data.length, at }, data)
    if (kind !== 'progress') offset += data.length
  }
  return offset
}

interface RunEvents {
  startedAt: number | undefined
  end: RunEndAnswer | undefined
  /** The run or its shim has ended. */
  readonly hasEnded: boolean
  /** Resolves after the next event, at once if there was one since the last call. */
  next(): Promise<void>
  stop(): void
}

/** What a shim reports of one run. */
const listen = (
  link: ShimLink | undefined,
  run: string,
  { signal, onAnswer }: ExchangeHandlers,
): RunEvents => {
  let isClosed = link === undefined
  let hasNews = false
  let wake = (): void => {}
  const ring = (): void => {
    hasNews = true
    wake()
  }
  const events: RunEvents = {
    startedAt: undefined,
    end: undefined,
    get hasEnded() {
      return isClosed || events.end !== undefined
    },
    next: async () => {
      if (!hasNews)
        await new Promise<void>(resolve => {
          wake = resolve
        })
      hasNews = false
    },
    stop: () => {
      unlisten?.()
      signal.removeEventListener('abort', ring)
    },
  }
  const unlisten = link?.listen(event => {
    if (event.kind === 'closed') isClosed = true
    else if (!('run' in event) || event.run !== run) return
    else if (event.kind === 'started') events.startedAt = event.at ?? Date.now()
    else if (event.kind === 'exit' || event.kind === 'lost' || event.kind === 'refused') events.end = event
    else onAnswer({ kind: 'heartbeat', run }, NOTHING)
    ring()
  })
  signal.addEventListener('abort', ring)
  return events
}
