import { AppError } from '../../jobs/errors.ts'
import type { StopReason } from '../../ports.ts'
import { type Gathered, gather } from './collect-results.ts'
import { execute, exitOf, quiet } from './execute-command.ts'
import { createOutput } from './job-output.ts'
import { markStarted } from './job-state-files.ts'
import { limitsHit, symptomsOf } from './limits-hit.ts'
import { toLocalError } from './local-error.ts'
import type { Box } from './local-machine.ts'
import { redactNames } from './redact-names.ts'
import type { ShimExit, ShimResult, StartSpec } from './shim-protocol.ts'
import { openSpool } from './spool.ts'
import { endJob } from './stop-job.ts'
import { unpack } from './unpack-input.ts'
import { watchUsage } from './watch-usage.ts'

export interface JobRun {
  /** Never rejects. */
  readonly done: Promise<ShimResult>
  stop(kind: StopReason['kind'], graceSeconds: number): void
}

export interface JobRunOptions {
  readonly spec: StartSpec
  /** Boots the machine, or gives the one that waits. */
  machine(): Promise<Box>
  /** Ends a machine that is still booting. */
  abandon(): void
  onStarted(at: number): void
  onLog(): void
}

const COLLECT_MS = 120_000
const MAX_ARGUMENT_BYTES = 128 * 1024 - 1

/** One job from its inputs to its result, inside the shim. Nothing here needs the daemon. */
export const runJob = ({ spec, machine, abandon, onStarted, onLog }: JobRunOptions): JobRun => {
  const begun = performance.now()
  const phases: Record<string, number> = {}
  const spool = openSpool(spec.dir, spec.keep)
  const output = createOutput({
    spool,
    secrets: spec.secrets,
    format: spec.format,
    now: Date.now,
    onWrite: onLog,
  })
  const collecting = new AbortController()
  let box: Box | undefined
  let stopped: StopReason['kind'] | null = null
  let startedAt: number | undefined
  let ended = false

  const lap = (name: string, since: number) => {
    phases[name] = Math.round((performance.now() - since) * 10) / 10
  }

  const stop: JobRun['stop'] = (kind, graceSeconds) => {
    if (stopped !== null) return
    if (ended) {
      // The command is over; only its files are still being brought out.
      if (kind === 'cancel') collecting.abort(new AppError('conflict', 'The job was cancelled.'))
      return
    }
    stopped = kind
    if (box === undefined) abandon()
    else if (startedAt === undefined) box.kill()
    else endJob(box, graceSeconds * 1000, () => ended)
  }

  const run = async (): Promise<ShimResult> => {
    checkArguments(spec)
    box = await machine()
    lap('boot', begun)
    // Files lie in memory, too. How much of the sum is memory is watched below.
    box.plan.cgroup?.setLimits({
      memory: spec.limits.memory + spec.limits.disk,
      processes: spec.limits.processes,
      cpu: spec.limits.cpu,
    })
    const before = box.plan.cgroup?.events() ?? { memory: 0, processes: 0 }
    const unpacking = performance.now()
    for (const input of spec.inputs) await unpack(box, input)
    if (spec.inputs.length > 0) lap('unpack', unpacking)
    const mark = await markStarted(spec.dir)
    if (mark === undefined) return startedElsewhere
    if (stopped !== null) return neverStarted(stopped, box, phases)
    startedAt = mark
    const clock = setTimeout(() => stop('timeout', spec.graceSeconds), spec.timeoutSeconds * 1000)
    const running = performance.now()
    const over = execute(box, spec, output)
    onStarted(startedAt)
    const usage = watchUsage(box, spec.limits)
    const end = await over
    usage.end()
    ended = true
    if (spec.lifecycle === 'ephemeral') await box.plan.killLeftovers?.()
    clearTimeout(clock)
    lap('run', running)
    const endedAt = Date.now()

    const collectAt = performance.now()
    const gathered = end.alive
      ? await bounded(COLLECT_MS, collecting, signal =>
          gather({ box: box!, spec, signal, startedAt: startedAt! }),
        )
      : emptyHanded(spec)
    if (spec.artifacts.length > 0 || spec.wantsPatch) lap('collect', collectAt)
    if (spec.lifecycle === 'ephemeral' || !end.alive) await quiet(box)
    output.end()
    const after = box.plan.cgroup?.events() ?? before
    const told = output.agent()
    const exit: ShimExit = {
      ...exitOf(end),
      stopped,
      startedAt,
      endedAt,
      outputBytes: spool.outputBytes,
      ...gathered,
      artifacts: redactNames(gathered.artifacts, output.redact),
      skippedArtifacts: redactNames(gathered.skippedArtifacts, output.redact),
      usage: told.usage,
      isolation: box.plan.isolation,
      limitsHit: limitsHit({
        limits: spec.limits,
        timeoutSeconds: spec.timeoutSeconds,
        stopped,
        oomKills: after.memory - before.memory + Number(usage.memoryExceeded),
        refusedForks: after.processes - before.processes + Number(usage.processesExceeded),
        disk: end.disk,
        symptoms: end.code === 0 ? new Set() : symptomsOf(output.symptoms, box.plan.cgroup?.keeps),
      }),
      agentError: told.error,
      phases,
    }
    return { kind: 'exit', exit }
  }

  const done = run()
    .catch((error): ShimResult => {
      if (stopped !== null && startedAt === undefined) return neverStarted(stopped, box, phases)
      const failure = toLocalError(error).toBody()
      const told = { ...failure, message: output.redact(failure.message) }
      return { kind: startedAt === undefined ? 'not-started' : 'lost', error: told }
    })
    .finally(() => spool.close())
  return { done, stop }
}

const bounded = async (
  ms: number,
  controller: AbortController,
  work: (signal: AbortSignal) => Promise<Gathered>,
): Promise<Gathered> => {
  const timer = setTimeout(
    () =>
      controller.abort(new AppError('timeout', `Bringing out the files took longer than ${ms / 1000} s.`)),
    ms,
  )
  try {
    return await work(controller.signal)
  } finally {
    clearTimeout(timer)
  }
}

const emptyHanded = (spec: StartSpec): Gathered => ({
  artifacts: [],
  skippedArtifacts:
    spec.artifacts.length > 0 || spec.wantsPatch
      ? [{ path: '.', reason: 'the machine ended with the job, and its workspace with it' }]
      : [],
  patch: null,
})

const neverStarted = (
  stopped: StopReason['kind'],
  box: Box | undefined,
  phases: Record<string, number>,
): ShimResult => {
  const now = Date.now()
  return {
    kind: 'exit',
    exit: {
      code: null,
      signal: null,
      stopped,
      startedAt: now,
      endedAt: now,
      outputBytes: 0,
      artifacts: [],
      skippedArtifacts: [],
      patch: null,
      usage: null,
      isolation: box?.plan.isolation ?? [],
      limitsHit: [],
      agentError: null,
      phases,
    },
  }
}

const startedElsewhere: ShimResult = {
  kind: 'lost',
  error: new AppError('conflict', 'Another process has started this job already.').toBody(),
}

const checkArguments = (spec: StartSpec): void => {
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
