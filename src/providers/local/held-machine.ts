import { AppError } from '../../jobs/errors.ts'
import type { SessionRequest, StopReason } from '../../ports.ts'
import type { Answer, ShimState } from '../../runner/frames.ts'
import type { RunResult } from '../../runner/run-result.ts'
import { type JobRun, runJob } from './job-run.ts'
import { saveResult } from './job-state-files.ts'
import type { LocalMachine } from './local-machine.ts'
import { type LocalSession, openLocalSession } from './local-session.ts'
import { type MachineFactory, whenReady } from './machine-factory.ts'
import { endAnswer } from './run-end.ts'
import type { RunSpec } from './run-spec.ts'

/** A machine that a shim holds, and the run in it. It runs one at a time. */
export interface HeldMachine {
  /** Throws when the run cannot start. */
  start(spec: RunSpec): void
  stop(runId: string, why: StopReason['kind'], graceSeconds: number): void
  /** Whether this is its run. A run that has ended stays until its result is on disk. */
  holds(runId: string): boolean
  /** Undefined while the run has not ended. */
  readonly result: RunResult | undefined
  /** Runs a program beside the run. */
  open(session: string, request: SessionRequest): Promise<LocalSession>
  /** Kills the machine and everything in it; resolves when it is gone. */
  destroy(): Promise<void>
  describe(): ShimState['machines'][number]
}

export interface HeldMachineOptions {
  readonly id: string
  readonly factory: Pick<MachineFactory, 'take'>
  send(answer: Answer): void
  /** The machine has exited, and nothing is left to save. */
  onGone(): Promise<void>
}

interface CurrentRun {
  readonly spec: RunSpec
  readonly run: JobRun
  /** Set when the run has ended and its result is being written. */
  finished?: {
    readonly result: RunResult
    readonly stopSaving: AbortController
    readonly saved: Promise<void>
  }
}

const HEARTBEAT_MS = 10_000
const SHUTDOWN_MS = 1_000

export const createHeldMachine = ({ id, factory, send, onGone }: HeldMachineOptions): HeldMachine => {
  let current: CurrentRun | null = null
  let machine: LocalMachine | undefined
  let releasing: Promise<void> | undefined

  const getMachine = async (spec: RunSpec): Promise<LocalMachine> => {
    if (machine !== undefined) return machine
    if (spec.continues)
      throw new AppError('not_found', 'The kept machine has ended, and its workspace with it.')
    const next = await factory.take(spec)
    machine = next
    void next.gone.then(() => {
      if (machine === next) machine = undefined
    })
    await whenReady(next)
    return next
  }

  /** Shuts the machine down. */
  const release = (): Promise<void> => {
    releasing ??= endMachine()
    return releasing
  }

  const endMachine = async (): Promise<void> => {
    const last = machine
    if (last !== undefined) {
      last.shutDown()
      const timer = setTimeout(() => last.kill(), SHUTDOWN_MS)
      await last.gone
      clearTimeout(timer)
    }
    machine = undefined
    await onGone()
  }

  const finish = async (ended: CurrentRun, result: RunResult): Promise<void> => {
    const { spec } = ended
    const stopSaving = new AbortController()
    const saved = saveResult(spec.dir, result, stopSaving.signal)
    ended.finished = { result, stopSaving, saved }
    // The daemon need not wait for the disk: the file is for a restarted daemon.
    send(endAnswer(spec.runId, result))
    await saved
    if (current !== ended) return
    current = null
    if (spec.lifecycle === 'ephemeral' || machine === undefined) await release()
  }

  return {
    start: spec => {
      if (releasing !== undefined) throw new AppError('unavailable', 'This machine is shutting down.')
      if (current !== null && current.finished === undefined)
        throw new AppError('conflict', `Another run (${current.spec.runId}) is in this machine.`)
      const run = runJob({
        spec,
        getMachine: () => getMachine(spec),
        killBootingMachine: () => machine?.kill(),
        onStarted: at => send({ kind: 'started', run: spec.runId, fresh: true, at }),
        onLog: oncePerTurn(() => send({ kind: 'logged', run: spec.runId })),
      })
      // The daemon has the result of the previous run, else it would not send the next one.
      current?.finished?.stopSaving.abort()
      const started: CurrentRun = { spec, run }
      current = started
      const heartbeat = setInterval(() => send({ kind: 'heartbeat', run: spec.runId }), HEARTBEAT_MS)
      void run.done.then(result => {
        clearInterval(heartbeat)
        return finish(started, result)
      })
    },
    stop: (runId, why, graceSeconds) => {
      if (current?.spec.runId === runId) current.run.stop(why, graceSeconds)
    },
    holds: runId => current?.spec.runId === runId,
    get result() {
      return current?.finished?.result
    },
    open: async (session, request) => {
      if (machine === undefined || releasing !== undefined)
        throw new AppError('unavailable', 'The machine has ended or is not ready yet.')
      await machine.ready
      return openLocalSession(machine, session, { ...request, env: { ...current?.spec.env, ...request.env } })
    },
    destroy: async () => {
      const last = machine
      last?.kill()
      if (current !== null && current.finished === undefined) {
        current.run.stop('cancel', 0)
        return void (await last?.gone) // `release` runs when the run has ended.
      }
      current?.finished?.stopSaving.abort()
      await current?.finished?.saved
      await release()
    },
    describe: () => ({
      workspace: id,
      run: current === null || current.finished !== undefined ? null : current.spec.runId,
    }),
  }
}

/** At most one call per turn of the event loop. */
const oncePerTurn = (call: () => void): (() => void) => {
  let pending = false
  return () => {
    if (pending) return
    pending = true
    setImmediate(() => {
      pending = false
      call()
    })
  }
}
