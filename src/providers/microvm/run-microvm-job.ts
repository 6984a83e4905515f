import { proxyEnvironment } from '../../egress/proxy-environment.ts'
import { AppError } from '../../jobs/errors.ts'
import type { Manifest } from '../../jobs/manifest.ts'
import { WORKSPACE } from '../../jobs/paths.ts'
import { formatSize, parseSize } from '../../jobs/sizes.ts'
import type { AttachRequest, Outcome, Run } from '../../ports.ts'
import { openEgress, PROXY_URL } from '../../runner/machine-egress.ts'
import { driveRun, type RunOptions } from '../../runner/run.ts'
import { openContext, type RunContext, sealContext } from '../../runner/sealed-context.ts'
import { argvElsewhere, type Launch, startRequest } from '../../runner/start-request.ts'
import { detailsOf } from './machine-details.ts'
import { microvmHost } from './microvm-host.ts'
import { wasOutOfMemory } from './out-of-memory.ts'
import { placeInputs } from './place-inputs.ts'
import type { ProviderContext } from './provider-context.ts'
import { RUNNER_HOME, runInGuest, SYSTEM_PATH } from './run-in-guest.ts'

/** Runs the command of a job in the VM of its machine. */
export const startInMicrovm = (context: ProviderContext, run: Run): Promise<Outcome> =>
  withEgress(context, run, async ready => {
    const { machine, manifest } = run
    try {
      assertSameVm(run)
      if (manifest.network !== undefined) await run.remember({ network: manifest.network })
      const link = await context.links.to(machine.id, run.detach)
      await ready
      await placeInputs({ link, blobs: context.runner.blobs, manifest, signal: run.detach })
    } catch (error) {
      if (run.detach.aborted) return { kind: 'detached' }
      if (!(error instanceof AppError)) throw error
      return { kind: 'not-started', error }
    }
    return driveRun({ ...driveOptions(context, run), ...launchOf(context, run) })
  })

/** Follows the command that an earlier daemon started. */
export const attachToMicrovm = (context: ProviderContext, run: AttachRequest): Promise<Outcome> =>
  withEgress(context, run, () => driveRun(driveOptions(context, run)))

/** Lends the job the proxy, if it may use a network. */
const withEgress = async (
  context: ProviderContext,
  run: AttachRequest,
  work: (ready: Promise<void> | undefined) => Promise<Outcome>,
): Promise<Outcome> => {
  const network = networkFor(run)
  const { id } = run.machine
  const egress =
    network === 'none'
      ? undefined
      : openEgress({
          machine: `VM ${id}`,
          home: RUNNER_HOME,
          network,
          signal: run.detach,
          run: async program => runInGuest(await context.links.to(id, program.signal), program),
        })
  try {
    return await withLimits(context, run, await work(egress?.ready))
  } finally {
    await egress?.end()
  }
}

/** A follow-up job that asks for none keeps that of its machine. */
const networkFor = ({ manifest, machine }: AttachRequest): NonNullable<Manifest['network']> =>
  manifest.network ?? (manifest.machine === undefined ? 'none' : detailsOf(machine).network)

const describeNetwork = (network: NonNullable<Manifest['network']>): string => {
  if (network === 'none') return 'no network'
  return network === 'full' ? 'network through a proxy' : `network: only ${network.join(', ')}`
}

const driveOptions = (context: ProviderContext, run: AttachRequest): RunOptions => {
  const { machine } = run
  const { boot } = detailsOf(machine)
  return {
    ...context.runner,
    run,
    context: sealed => openContext(sealed, context.runner.keys),
    host: microvmHost({ links: context.links, machineId: machine.id, owner: context.owner, bootId: boot }),
    bootId: boot,
    begun: performance.now(),
    // The runner in the VM holds the command through any outage of the connection.
    remote: true,
  }
}

const launchOf = ({ runner }: ProviderContext, run: Run): Launch => {
  const { command, machine } = run
  const network = networkFor(run)
  const proxy = network === 'none' ? {} : proxyEnvironment(PROXY_URL, network === 'full' ? [] : network)
  const context: RunContext = {
    secrets: Object.values(command.secrets),
    format: command.format,
    isolation: [...detailsOf(machine).isolation, describeNetwork(network)],
    timeoutSeconds: command.timeoutSeconds,
  }
  const start = startRequest({
    run,
    keep: runner.keep,
    graceSeconds: runner.graceSeconds,
    context: sealContext(context, runner.keys),
    env: { HOME: WORKSPACE, PATH: SYSTEM_PATH, ...proxy, ...command.env, ...command.secrets },
    argv: argvElsewhere(command),
  })
  return { start, context }
}

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
