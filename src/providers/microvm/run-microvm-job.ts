import { basename, isAbsolute } from 'node:path'
import { AppError } from '../../jobs/errors.ts'
import { WORKSPACE } from '../../jobs/paths.ts'
import { formatSize, parseSize } from '../../jobs/sizes.ts'
import type { AttachRequest, Outcome, Run } from '../../ports.ts'
import { driveRun, type RunOptions } from '../../runner/run.ts'
import { openContext, type RunContext, sealContext } from '../../runner/sealed-context.ts'
import { type Launch, startRequest } from '../../runner/start-request.ts'
import { detailsOf } from './machine-details.ts'
import { microvmHost } from './microvm-host.ts'
import { wasOutOfMemory } from './out-of-memory.ts'
import { placeInputs } from './place-inputs.ts'
import type { ProviderContext } from './provider-context.ts'
import { SYSTEM_PATH } from './run-in-guest.ts'

/** Runs the command of a job in the VM of its machine. */
export const startInMicrovm = async (context: ProviderContext, run: Run): Promise<Outcome> => {
  const { machine, manifest } = run
  try {
    assertSameVm(run)
    const link = await context.links.to(machine.id, run.detach)
    await placeInputs({ link, blobs: context.runner.blobs, manifest, signal: run.detach })
  } catch (error) {
    if (run.detach.aborted) return { kind: 'detached' }
    if (!(error instanceof AppError)) throw error
    return { kind: 'not-started', error }
  }
  const outcome = await driveRun({ ...driveOptions(context, run), ...launchOf(context, run) })
  return withLimits(context, run, outcome)
}

/** Follows the command that an earlier daemon started. */
export const attachToMicrovm = async (context: ProviderContext, run: AttachRequest): Promise<Outcome> =>
  withLimits(context, run, await driveRun(driveOptions(context, run)))

const driveOptions = (context: ProviderContext, run: AttachRequest): RunOptions => {
  const { machine } = run
  const { boot } = detailsOf(machine)
  return {
    ...context.runner,
    run,
    context: sealed => openContext(sealed, context.runner.key),
    host: microvmHost({ links: context.links, machineId: machine.id, owner: context.owner, bootId: boot }),
    bootId: boot,
    begun: performance.now(),
    // The runner in the VM holds the command through any outage of the connection.
    remote: true,
  }
}

const launchOf = ({ runner }: ProviderContext, run: Run): Launch => {
  const { command, machine } = run
  const context: RunContext = {
    secrets: Object.values(command.secrets),
    format: command.format,
    isolation: [...detailsOf(machine).isolation, 'no network'],
    timeoutSeconds: command.timeoutSeconds,
  }
  const start = startRequest({
    run,
    keep: runner.keep,
    graceSeconds: runner.graceSeconds,
    context: sealContext(context, runner.key),
    env: { HOME: WORKSPACE, PATH: SYSTEM_PATH, ...command.env, ...command.secrets },
    argv: withProgramsOfImage(command),
  })
  return { start, context }
}

/** An agent that was found on this computer is one of the image. */
const withProgramsOfImage = ({ argv: [program = '', ...rest], programs }: Run['command']): string[] =>
  programs.length > 0 && isAbsolute(program) ? [basename(program), ...rest] : [program, ...rest]

/** Refuses a follow-up job that asks for what only a new VM can have. */
const assertSameVm = ({ manifest: { machine, resources } }: Run): void => {
  if (machine === undefined || resources === undefined) return
  throw new AppError('unsupported', `The kept VM ${machine} cannot change 'resources'.`, {
    hint: 'Leave that out, or submit the job without machine.',
  })
}

/** Adds the memory limit to a failed job that hit it. */
const withLimits = async (
  { links, defaults }: ProviderContext,
  { machine, manifest }: AttachRequest,
  outcome: Outcome,
): Promise<Outcome> => {
  if (outcome.kind !== 'exit' || outcome.exit.code === 0 || outcome.exit.stopped !== null) return outcome
  if (!(await wasOutOfMemory(links, machine.id))) return outcome
  const memory = manifest.resources?.memory
  const limit = formatSize(memory === undefined ? defaults.memory : parseSize(memory))
  const limitsHit = [...outcome.exit.limitsHit, `memory: it used more than ${limit}`]
  return { kind: 'exit', exit: { ...outcome.exit, limitsHit } }
}
