import { setTimeout as sleep } from 'node:timers/promises'
import { AppError, toAppError } from '../jobs/errors.ts'
import { redactNames } from '../output/redact-names.ts'
import type { AttachRequest, Blobs, Exit, Outcome, StopReason } from '../ports.ts'
import type { RunnerHost } from './channel.ts'
import { readContext, type StartRequest, stopRun } from './client.ts'
import { adoptWithRetries, COLLECT_MS, collectWithRetries } from './collect-with-retries.ts'
import { type FollowedEnd, followRun } from './follow-run.ts'
import type { KeepLimits } from './keep-limits.ts'
import { createOutputReport, type OutputReport } from './output-report.ts'
import { NO_CONTEXT, type RunContext } from './sealed-context.ts'
import { signalOf } from './signals.ts'

export interface RunOptions {
  readonly host: RunnerHost
  readonly run: AttachRequest
  /** Absent when an earlier daemon started it. */
  readonly start?: Omit<StartRequest, 'from'>
  /** A function unseals the context stored with the run. Null when the runner redacts and formats the output itself. */
  readonly context: RunContext | null | ((sealed: string) => RunContext)
  readonly blobs: Blobs
  readonly keep: KeepLimits
  readonly graceSeconds: number
  /** The boot of the machine at the time the run was sent, if known. */
  readonly bootId?: string | undefined
  /** Where a runner on this computer puts the files that it collects. Without it the result of a runner is not used. */
  readonly filesDirectory?: string
  readonly executedOn?: NonNullable<Exit['executedOn']>
  readonly image?: NonNullable<Exit['image']>
  /** When the run was begun, by `performance.now()`. */
  readonly begun: number
  /**
   * The runner is on another computer: it holds the command through any outage of the connection, so silence never ends
   * the job, and it remembers the start when this computer loses power.
   */
  readonly remote?: boolean
  /** The returned promise must settle before the outcome is reported. */
  onStarted?(): Promise<void> | undefined
  onUndelivered?(): Promise<void>
  takenOver?(): AppError
}

const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 5_000
/** For errors that a person must fix first, such as a refused login. */
const LONG_PAUSE_MS = 30_000

/** A run id, unique on its machine: a kept machine runs several jobs, and a job can have several attempts. */
export const runIdOf = ({ machine, job }: Pick<AttachRequest, 'machine' | 'job'>): string =>
  `${machine.id}.${job.id}${job.attempts > 1 ? `.${job.attempts}` : ''}`

/** Drives one run on a machine: start or attach, output, stop, files, outcome. */
export const driveRun = async (options: RunOptions): Promise<Outcome> => {
  const { host, run, start } = options
  if (run.detach.aborted) return { kind: 'detached' }
  if (run.stop.aborted && start) return stoppedBeforeStart(options)
  let context: RunContext | null
  try {
    context =
      typeof options.context === 'function' ? await fetchContext(options, options.context) : options.context
  } catch (error) {
    return run.detach.aborted ? { kind: 'detached' } : { kind: 'lost', error: toAppError(error) }
  }
  let startedAt = run.job.startedAt ?? undefined
  let startReport: Promise<unknown> | undefined
  const report = createOutputReport({
    sink: run.sink,
    context,
    outputBytes: run.job.outputBytes,
  })
  const stopper = createStopper(options)
  try {
    const end = await followRun({
      host,
      run: runIdOf(run),
      ...(start
        ? { start }
        : {
            hasStarted: run.job.startedAt !== null,
            unsureMs: patienceMs(run),
            bootId: options.bootId,
          }),
      from: run.sink.position,
      onStarted: (_, at) => {
        if (startReport) return
        startedAt ??= at ?? Date.now()
        startReport = Promise.all([
          run.sink.started(startedAt, { lazy: options.remote === true }),
          options.onStarted?.(),
        ])
        startReport.catch(() => undefined) // Awaited when the run has ended.
      },
      onOutput: report.push,
      onProgress: report.progress,
      onDropped: report.skip,
      ...(!options.remote && { onHeartbeat: run.sink.heartbeat }),
      ready: report.ready,
      ...(options.onUndelivered && { onUndelivered: options.onUndelivered }),
      signal: run.detach,
    })
    stopper.end()
    await startReport
    await report.end()
    return await conclude(options, { context, end, report, startedAt, stopped: stopper.kind() })
  } catch (error) {
    if (run.detach.aborted) {
      // The next daemon reads again what could not be stored.
      await report.end().catch(() => undefined)
      return { kind: 'detached' }
    }
    return { kind: startedAt === undefined ? 'not-started' : 'lost', error: toAppError(error) }
  } finally {
    stopper.end()
  }
}

interface Ending {
  context: RunContext | null
  end: FollowedEnd
  report: OutputReport
  startedAt: number | undefined
  stopped: StopReason['kind'] | undefined
}

const conclude = async (options: RunOptions, ending: Ending): Promise<Outcome> => {
  const { end } = ending
  if (end.kind === 'superseded') return { kind: 'lost', error: options.takenOver?.() ?? takenOver(options) }
  if (end.kind === 'not-started')
    return ending.stopped ? stoppedBeforeStart(options) : { kind: 'not-started', error: end.error }
  if (end.kind === 'lost') return end
  const { filesDirectory: directory } = options
  const exit =
    end.result && directory !== undefined
      ? await adoptWithRetries(options, end.result, directory)
      : await collectExit(options, ending, end)
  return { kind: 'exit', exit }
}

const takenOver = ({ run }: RunOptions): AppError =>
  new AppError('conflict', `Another daemon has taken over the command in machine ${run.machine.id}.`, {
    hint: 'Two daemons use the same home directory: deputy daemon status',
    retryable: false,
  })

/** The exit of a run whose files are still on the machine. */
const collectExit = async (
  options: RunOptions,
  { context, report, ...ending }: Ending,
  end: Extract<FollowedEnd, { kind: 'exit' }>,
): Promise<Exit> => {
  const running = performance.now()
  const stopped = end.how === 'timeout' ? 'timeout' : end.how === 'stop' ? (ending.stopped ?? 'cancel') : null
  const endedAt = end.endedAt || Date.now()
  const startedAt = ending.startedAt ?? (end.startedAt || endedAt)
  const collected = await collectWithRetries(options, startedAt)
  const agent = report.agent()
  return {
    ...signalOf(end.code),
    stopped,
    startedAt,
    endedAt: Math.max(startedAt, endedAt),
    ...collected,
    artifacts: redactNames(collected.artifacts, report.redact),
    skippedArtifacts: redactNames(collected.skippedArtifacts, report.redact),
    usage: agent.usage,
    isolation: context?.isolation ?? [],
    limitsHit: stopped === 'timeout' ? [`time: it ran longer than ${context?.timeoutSeconds} s`] : [],
    agentError: agent.error,
    phases: { run: Math.round(running - options.begun), collect: Math.round(performance.now() - running) },
    ...(options.executedOn && { executedOn: options.executedOn }),
    ...(options.image && { image: options.image }),
  }
}

/** Repeats the stop request until the command has ended: the start request may arrive after the first stop. */
const createStopper = ({
  host,
  run,
  graceSeconds,
}: RunOptions): { kind(): StopReason['kind'] | undefined; end(): void } => {
  const over = new AbortController()
  let kind: StopReason['kind'] | undefined
  const insist = async (): Promise<void> => {
    kind = (run.stop.reason as StopReason).kind
    let pause = FIRST_PAUSE_MS
    while (!over.signal.aborted && !run.detach.aborted) {
      try {
        const channel = await host.connect(over.signal)
        await stopRun(channel, { run: runIdOf(run), graceSeconds, why: kind, signal: over.signal })
      } catch {
        // The machine does not answer: try again until it does.
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

/** By then the command's own clock has ended it. */
const patienceMs = (run: AttachRequest): number => run.job.timeoutSeconds * 1000 + COLLECT_MS

/** Retries until it succeeds: without the context the secrets in the output cannot be redacted. */
const fetchContext = async (
  { host, run }: RunOptions,
  open: (sealed: string) => RunContext,
): Promise<RunContext> => {
  const until = performance.now() + patienceMs(run)
  for (let pause = FIRST_PAUSE_MS; ; ) {
    let sealed: string
    try {
      sealed = await readContext(await host.connect(run.detach), runIdOf(run), run.detach)
    } catch (error) {
      const { retryable, code } = toAppError(error)
      // A refused login may be fixed in time.
      if (code !== 'unavailable' && code !== 'timeout') throw error
      if (performance.now() > until) throw error
      await sleep(pause, undefined, { signal: run.detach })
      pause = Math.min(pause * 2, retryable ? LONGEST_PAUSE_MS : LONG_PAUSE_MS)
      continue
    }
    return sealed === '' ? NO_CONTEXT : open(sealed)
  }
}

const stoppedBeforeStart = ({ run, context, executedOn }: RunOptions): Outcome => {
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
      isolation: typeof context === 'function' ? [] : (context?.isolation ?? []),
      limitsHit: [],
      agentError: null,
      phases: {},
      ...(executedOn && { executedOn }),
    },
  }
}
