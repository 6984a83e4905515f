import { AppError } from '../../jobs/errors.ts'
import { createJobOutput, type JobOutput } from '../../output/job-output.ts'
import { redactNames } from '../../output/redact-names.ts'
import type { StopReason } from '../../ports.ts'
import type { RunExit, RunResult } from '../../runner/run-result.ts'
import { type CollectedResults, collectResults } from './collect-results.ts'
import { type CommandEnd, executeCommand, exitStatus, shutDownAndDrain } from './execute-command.ts'
import { markStarted, unmarkStarted } from './job-state-files.ts'
import { limitsHit, uncountedLimitErrors } from './limits-hit.ts'
import { toLocalError } from './local-error.ts'
import type { LocalMachine } from './local-machine.ts'
import type { RunSpec } from './run-spec.ts'
import { sampleResources } from './sample-resources.ts'
import { openSpool } from './spool.ts'
import { stopJob } from './stop-job.ts'
import { unpackInput } from './unpack-input.ts'
import { type UsageWatch, watchUsage } from './watch-usage.ts'

export interface JobRun {
  /** Never rejects. */
  readonly done: Promise<RunResult>
  stop(kind: StopReason['kind'], graceSeconds: number): void
}

export interface JobRunOptions {
  readonly spec: RunSpec
  /** Returns the warm machine if it fits, else boots one. */
  getMachine(): Promise<LocalMachine>
  /** Kills a machine that is still booting. */
  killBootingMachine(): void
  onStarted(at: number): void
  onLog(): void
}

const COLLECT_MS = 120_000
const MAX_ARGUMENT_BYTES = 128 * 1024 - 1

/** Runs one job inside the shim, from its inputs to its result, without the daemon. */
export const runJob = ({ spec, getMachine, killBootingMachine, onStarted, onLog }: JobRunOptions): JobRun => {
  const beganAt = performance.now()
  const phases: Record<string, number> = {}
  const spool = openSpool(spec.dir, spec.keep)
  const output = createJobOutput({
    secrets: Object.values(spec.secrets),
    format: spec.format,
    write: (kind, data) => {
      spool.write(kind, data, Date.now())
      onLog()
    },
  })
  const collecting = new AbortController()
  let machine: LocalMachine | undefined
  let stopped: StopReason['kind'] | null = null
  let startedAt: number | undefined
  let ended = false

  const lap = (name: string, since: number) => {
    phases[name] = Math.round((performance.now() - since) * 10) / 10
  }

  const stop: JobRun['stop'] = (kind, graceSeconds) => {
    if (stopped !== null) return
    if (ended) {
      // The command has ended; only the collection of its files can still be cancelled.
      if (kind === 'cancel') collecting.abort(new AppError('conflict', 'The job was cancelled.'))
      return
    }
    stopped = kind
    if (machine === undefined) killBootingMachine()
    else if (startedAt === undefined) machine.kill()
    else stopJob(machine, graceSeconds * 1000, () => ended)
  }

  const run = async (): Promise<RunResult> => {
    checkArguments(spec)
    machine = await getMachine()
    lap('boot', beganAt)
    // The files of a sandbox are in memory, so the cgroup limits the sum; `watchUsage` limits the memory alone.
    machine.plan.cgroup?.setLimits({
      memory: spec.limits.memory + spec.limits.disk,
      processes: spec.limits.processes,
      cpu: spec.limits.cpu,
    })
    const before = machine.plan.cgroup?.events() ?? { memory: 0, processes: 0 }
    const unpacking = performance.now()
    for (const input of spec.inputs) await unpackInput(machine, input)
    if (spec.inputs.length > 0) lap('unpack', unpacking)
    const mark = await markStarted(spec.dir)
    if (mark === undefined) return startedElsewhere
    if (stopped !== null) {
      await unmarkStarted(spec.dir)
      return stoppedBeforeStart
    }
    startedAt = mark
    const timeout = setTimeout(() => stop('timeout', spec.graceSeconds), spec.timeoutSeconds * 1000)
    const running = performance.now()
    const commandEnd = executeCommand(machine, spec, output)
    onStarted(startedAt)
    const usage = watchUsage(machine, spec.limits)
    const sampling = sampleResources(machine)
    const end = await commandEnd
    const samples = sampling.end(end.alive)
    usage.jobEnded()
    ended = true
    if (spec.lifecycle === 'ephemeral') await machine.plan.killLeftovers?.()
    clearTimeout(timeout)
    lap('run', running)
    const endedAt = Date.now()

    const collectAt = performance.now()
    const collected = end.alive
      ? await withTimeout(COLLECT_MS, collecting, signal =>
          collectResults({ machine: machine!, spec, signal, startedAt: startedAt! }),
        )
      : nothingCollected(spec)
    if (spec.artifacts.length > 0 || spec.wantsPatch) lap('collect', collectAt)
    if (spec.lifecycle === 'ephemeral' || !end.alive) await shutDownAndDrain(machine)
    output.end()
    const times = { startedAt, endedAt, phases, outputBytes: spool.outputBytes }
    const resources = samples.length > 0 ? { resources: samples } : {}
    return {
      kind: 'exit',
      exit: {
        ...times,
        ...resources,
        ...describeEnd({ spec, machine, output, usage, before, end, stopped, collected }),
      },
    }
  }

  const done = run()
    .catch((error): RunResult => {
      if (stopped !== null && startedAt === undefined) return stoppedBeforeStart
      const failure = toLocalError(error).toBody()
      const redacted = { ...failure, message: output.redact(failure.message) }
      return { kind: startedAt === undefined ? 'not-started' : 'lost', error: redacted }
    })
    .finally(() => spool.close())
  return { done, stop }
}

interface Ending {
  readonly spec: RunSpec
  readonly machine: LocalMachine
  readonly output: JobOutput
  readonly usage: UsageWatch
  /** What the cgroup had counted before the command ran. */
  readonly before: { readonly memory: number; readonly processes: number }
  readonly end: CommandEnd
  readonly stopped: StopReason['kind'] | null
  readonly collected: CollectedResults
}

const describeEnd = ({
  spec: { limits, timeoutSeconds },
  machine: { plan },
  output,
  usage,
  before,
  end,
  stopped,
  collected,
}: Ending): Omit<RunExit, 'startedAt' | 'endedAt' | 'phases' | 'outputBytes' | 'resources'> => {
  const after = plan.cgroup?.events() ?? before
  const summary = output.agentSummary()
  return {
    ...exitStatus(end),
    stopped,
    ...collected,
    artifacts: redactNames(collected.artifacts, output.redact),
    skippedArtifacts: redactNames(collected.skippedArtifacts, output.redact),
    usage: summary.usage,
    isolation: plan.isolation,
    limitsHit: limitsHit({
      limits,
      timeoutSeconds,
      stopped,
      oomKills: after.memory - before.memory + Number(usage.memoryExceeded),
      refusedForks: after.processes - before.processes + Number(usage.processesExceeded),
      disk: end.disk,
      printedErrors:
        end.code === 0 ? new Set() : uncountedLimitErrors(output.limitErrors, plan.cgroup?.enforces),
    }),
    agentError: summary.error,
  }
}

const withTimeout = async (
  ms: number,
  controller: AbortController,
  work: (signal: AbortSignal) => Promise<CollectedResults>,
): Promise<CollectedResults> => {
  const timer = setTimeout(
    () => controller.abort(new AppError('timeout', `Collecting the files took longer than ${ms / 1000} s.`)),
    ms,
  )
  try {
    return await work(controller.signal)
  } finally {
    clearTimeout(timer)
  }
}

const nothingCollected = (spec: RunSpec): CollectedResults => ({
  artifacts: [],
  skippedArtifacts:
    spec.artifacts.length > 0 || spec.wantsPatch
      ? [{ path: '.', reason: 'the machine ended with the job, and its workspace with it' }]
      : [],
  patch: null,
})

const stoppedBeforeStart: RunResult = {
  kind: 'not-started',
  error: new AppError('conflict', 'The job was stopped before it started.').toBody(),
}

const startedElsewhere: RunResult = {
  kind: 'lost',
  error: new AppError('conflict', 'Another process has started this job already.').toBody(),
}

const checkArguments = (spec: RunSpec): void => {
  for (const argument of [...spec.argv, ...Object.values(spec.env)])
    if (Buffer.byteLength(argument) > MAX_ARGUMENT_BYTES)
      throw new AppError(
        'invalid',
        `An argument of the command is longer than the ${MAX_ARGUMENT_BYTES} bytes Linux allows.`,
        {
          hint: "Put the text into a file of 'files' and let the command read it.",
        },
      )
}
