import { setTimeout as sleep } from 'node:timers/promises'
import type { AllowedDirectories } from '../jobs/allowed-directories.ts'
import { parseBatch } from '../jobs/batch-command.ts'
import { toAppError } from '../jobs/errors.ts'
import type { Manifest } from '../jobs/manifest.ts'
import type { JobState } from '../jobs/states.ts'
import { isTerminal } from '../jobs/states.ts'
import type { AttachRequest, Exit, Outcome, StopReason } from '../ports.ts'
import { memberManifest } from './agent-members.ts'

/** The part of `Deputy` that a batch needs. */
export interface ChildJobs {
  submit(
    manifest: unknown,
    origin: string,
    options: { parentId: string; directories: AllowedDirectories },
  ): Promise<{ job_id: string; status: JobState }>
  wait(id: string, options: { timeoutMs: number; signal: AbortSignal }): Promise<ChildView>
  cancel(id: string, by: string): Promise<unknown>
  output(
    id: string,
    options: { cursor: number; maxBytes: number; signal: AbortSignal },
  ): Promise<{ pieces: readonly ({ data: Uint8Array } | { skipped: number })[]; next_cursor: number }>
}

interface ChildView {
  readonly job_id: string
  readonly status: JobState
  readonly exit_code: number | null
}

export type BatchRun = Pick<AttachRequest, 'job' | 'manifest' | 'sink' | 'stop' | 'detach'>

export interface BatchOptions {
  children(): ChildJobs
  /** Returns the manifest for one command. Throws when the command is not allowed. */
  child(manifest: Manifest, index: number): Promise<unknown>
}

const WAIT_MS = 30_000

/**
 * A batch is a job that runs other jobs. It has no machine: it submits its children, each with an idempotency
 * key so that a restarted daemon finds them again, and waits until all have ended.
 */
export const runBatch = async (
  options: BatchOptions,
  run: BatchRun,
  /** The children may exist already. Submitting them again finds them, so that they can be cancelled, too. */
  isRestart: boolean,
): Promise<Outcome> => {
  const { commands, directories, child } = membersOf(run.manifest, options)
  const startedAt = run.job.startedAt ?? Date.now()
  await run.sink.started(startedAt)
  const log = createLog(run, await loggedChildren(options.children(), run))
  const ids = new Map<number, string>()
  const onStop = (): void => {
    // A child that has just ended refuses to be cancelled.
    for (const id of ids.values())
      options
        .children()
        .cancel(id, (run.stop.reason as StopReason).by)
        .catch(() => undefined)
  }
  run.stop.addEventListener('abort', onStop, { once: true })
  let done = 0
  const runChild = async (command: string | undefined, index: number): Promise<boolean> => {
    const line = async (what: string): Promise<void> =>
      log(
        index,
        `[${index + 1}/${commands.length}] ${what}: ${(command ?? ids.get(index) ?? 'no job').split('\n')[0]!.slice(0, 120)}\n`,
        `${done} of ${commands.length} done`,
      )
    try {
      const manifest = await child(index)
      if (run.stop.aborted && !isRestart) {
        await line('not started, the batch was ended')
        return false
      }
      const key = `${run.job.id}-${index}`
      const job = await options
        .children()
        .submit({ ...(manifest as object), idempotency_key: key }, run.job.origin, {
          parentId: run.job.id,
          directories,
        })
      ids.set(index, job.job_id)
      if (run.stop.aborted) onStop()
      const end = await waitForEnd(options.children(), job.job_id, run.detach)
      done++
      await line(
        end.status === 'success'
          ? 'success'
          : `${end.status}${end.exit_code === null ? '' : ` (exit ${end.exit_code})`}`,
      )
      return end.status === 'success'
    } catch (error) {
      if (run.detach.aborted) throw error
      done++
      await line(`not started, ${toAppError(error).message}`)
      return false
    }
  }
  try {
    const ends = await Promise.all(commands.map(runChild))
    return { kind: 'exit', exit: exitOf(run, startedAt, ends.every(Boolean) ? 0 : 1) }
  } catch (error) {
    if (run.detach.aborted) return { kind: 'detached' }
    throw error
  } finally {
    run.stop.removeEventListener('abort', onStop)
  }
}

interface Members {
  /** One for each member; undefined for an agent, whose job id says more than the task that all share. */
  readonly commands: readonly (string | undefined)[]
  readonly directories: AllowedDirectories
  child(index: number): Promise<unknown>
}

const membersOf = (manifest: Manifest, options: BatchOptions): Members => {
  if (manifest.agents !== undefined)
    return {
      commands: new Array<undefined>(manifest.agents).fill(undefined),
      // The label with the workspace was checked when the batch was submitted.
      directories: 'any',
      child: async index => memberManifest(manifest, index),
    }
  const { commands = [], cwd } = parseBatch(manifest.agent?.command) ?? {}
  return {
    commands,
    directories: cwd === undefined ? [] : [cwd],
    child: index => options.child(manifest, index),
  }
}

const waitForEnd = async (children: ChildJobs, id: string, detach: AbortSignal): Promise<ChildView> => {
  for (;;) {
    detach.throwIfAborted()
    const view = await children.wait(id, { timeoutMs: WAIT_MS, signal: detach })
    if (isTerminal(view.status)) return view
    await sleep(50, undefined, { signal: detach })
  }
}

const LOG_BYTES = 1024 * 1024

/** Children whose line is already in the log. After a restart they may end in another order. */
const loggedChildren = async (children: ChildJobs, run: BatchRun): Promise<Set<number>> => {
  const written = new Set<number>()
  if (run.sink.position === 0) return written
  const { pieces } = await children.output(run.job.id, {
    cursor: 0,
    maxBytes: LOG_BYTES,
    signal: run.detach,
  })
  const text = Buffer.concat(pieces.flatMap(piece => ('data' in piece ? [piece.data] : []))).toString('utf8')
  for (const [, number] of text.matchAll(/^\[(\d+)\/\d+\] /gm)) written.add(Number(number) - 1)
  return written
}

/** Writes one line per child, once, in the order in which they end. */
const createLog = (
  run: BatchRun,
  written: ReadonlySet<number>,
): ((index: number, text: string, progress: string) => Promise<void>) => {
  let position = run.sink.position
  let offset = run.job.outputBytes
  let tail: Promise<void> = Promise.resolve()
  return (index, text, progress) => {
    if (written.has(index)) return tail
    tail = tail.then(async () => {
      const data = Buffer.from(text)
      position++
      const chunk = { stream: 'stdout' as const, offset, data, at: Date.now() }
      offset += data.length
      await run.sink.write({ position, chunks: [chunk], outputBytes: offset, progress })
    })
    return tail
  }
}

const exitOf = (run: BatchRun, startedAt: number, code: number): Exit => ({
  code,
  signal: null,
  stopped: run.stop.aborted ? (run.stop.reason as StopReason).kind : null,
  startedAt,
  endedAt: Date.now(),
  artifacts: [],
  skippedArtifacts: [],
  patch: null,
  usage: null,
  isolation: ['its commands are jobs of their own'],
  limitsHit: [],
  agentError: null,
  phases: {},
})
