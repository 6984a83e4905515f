import type { Client } from '../client/daemon-client.ts'
import type { JobView } from '../engine/deputy.ts'
import { isTerminal } from '../jobs/states.ts'
import type { Context } from './context.ts'
import { onInterrupt } from './interrupt.ts'
import { createOutputPrinter } from './print-output.ts'
import { duration, statusColor, statusMark } from './terminal/format.ts'
import { createStatusLine, type StatusLine } from './terminal/status-line.ts'

export interface WatchOptions {
  readonly raw: boolean
  /** No status line and no closing line. */
  readonly quiet: boolean
  /** Do not print the job's output. */
  readonly mute?: boolean
}

/**
 * Follows a job to its end: prints its output, shows its phase on a terminal, and cancels it on Ctrl-C.
 * Resolves with its last view.
 */
export const watchJob = async (
  context: Context,
  client: Client,
  job: JobView,
  options: WatchOptions,
): Promise<JobView> => {
  const leave = new AbortController()
  const line = createStatusLine(context.err, context.errColors)
  const cancel = (): void => {
    line.set('cancelling; Ctrl-C again leaves the job alone')
    // If the job cannot be cancelled, its output stream shows how it goes on.
    client.cancel(job.job_id).catch(() => {})
  }
  const exit = (): void => process.exit(130)
  const interrupts = onInterrupt(cancel, () => void line.stop().then(exit, exit))
  // The reader closed the pipe. A local command would get SIGPIPE here, so cancel the job.
  context.out.closed.addEventListener('abort', cancel)
  if (!options.quiet)
    void showPhase({ client, job, line, signal: leave.signal, busy: () => interrupts.count > 0 })
  try {
    await printToEnd({ context, client, id: job.job_id, line, options, signal: leave.signal })
    const last = await untilTerminal(client, job.job_id, leave.signal)
    await line.stop()
    if (!options.quiet && context.err.isTTY) await context.err.write(closingLine(context, last))
    return last
  } finally {
    leave.abort()
    interrupts.dispose()
    // Without a terminal there is nothing to clear.
    await line.stop().catch(() => {})
  }
}

const printToEnd = async (options: {
  context: Context
  client: Client
  id: string
  line: StatusLine
  options: WatchOptions
  signal: AbortSignal
}): Promise<void> => {
  const { context, client, id, line, signal } = options
  if (options.options.mute) return
  const printer = createOutputPrinter(context, { raw: options.options.raw })
  for await (const page of client.follow(id, { signal })) {
    if (page.pieces.length === 0) continue
    await line.hide()
    await printer.print(page)
    if (printer.atLineStart) line.show()
  }
  await printer.end()
  if (!printer.atLineStart && context.out.isTTY) await context.err.write('\n')
}

export const untilTerminal = async (client: Client, id: string, signal: AbortSignal): Promise<JobView> => {
  for (;;) {
    const view = await client.wait(id, { timeoutMs: 30_000, signal })
    if (isTerminal(view.status)) return view
  }
}

const showPhase = async (options: {
  client: Client
  job: JobView
  line: StatusLine
  signal: AbortSignal
  busy: () => boolean
}): Promise<void> => {
  const { client, line, signal, busy } = options
  let view = options.job
  const timer = setInterval(() => {
    if (!busy()) line.set(phaseText(view))
  }, 100)
  timer.unref()
  try {
    while (!signal.aborted && !isTerminal(view.status))
      view = await client.wait(view.job_id, { since: view.status, timeoutMs: 2000, signal })
  } catch {
    // The output stream reports errors; this one only updates the status line.
  } finally {
    clearInterval(timer)
  }
}

const phaseText = (view: JobView): string => {
  const since = (Date.now() - Date.parse(view.started_at ?? view.created_at)) / 1000
  const clock = since < 60 ? `${Math.max(0, since).toFixed(1)} s` : duration(since)
  if (view.status === 'pending' && view.progress !== null) return `${view.progress} · ${clock}`
  if (view.status === 'pending')
    return `waiting${view.queue_position === null ? '' : `, place ${view.queue_position} in the queue`} · ${clock}`
  if (view.status === 'provisioning')
    return `${view.progress ?? `preparing a machine (${view.runtime})`} · ${clock}`
  return `${view.progress ?? 'running'} · ${clock}`
}

const closingLine = (context: Context, view: JobView): string => {
  const { dim } = context.errColors
  const mark = statusColor(view.status, context.errColors)(`${statusMark(view.status)} ${view.status}`)
  const facts = [
    view.exit_code === null ? undefined : `exit ${view.exit_code}`,
    view.signal ?? undefined,
    duration(view.duration_seconds),
    view.runtime,
    view.job_id,
  ]
  return `${mark} ${dim(`· ${facts.filter(fact => fact !== undefined).join(' · ')}`)}\n`
}
