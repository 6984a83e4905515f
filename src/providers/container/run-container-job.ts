import { proxyEnvironment } from '../../egress/proxy-environment.ts'
import { AppError } from '../../jobs/errors.ts'
import { formatSize, parseSize } from '../../jobs/sizes.ts'
import type { AttachRequest, Outcome, Run } from '../../ports.ts'
import { PROXY_URL } from '../../runner/machine-egress.ts'
import { driveRun, type RunOptions } from '../../runner/run.ts'
import { openContext } from '../../runner/sealed-context.ts'
import { openContainerEgress } from './container-egress.ts'
import { containerHost, inspectContainer } from './container-host.ts'
import { containerName, describeNetwork } from './container-spec.ts'
import { assertSameContainer, networkFor } from './kept-container.ts'
import { launchRequest } from './launch-request.ts'
import { detailsOf } from './machine-details.ts'
import { wasOutOfMemory } from './out-of-memory.ts'
import { placeInputs } from './place-inputs.ts'
import { clientOf, type ProviderContext } from './provider-context.ts'
import { sampleContainer } from './sample-container.ts'

/** Runs the command of a job in the container of its machine. */
export const startInContainer = (context: ProviderContext, run: Run): Promise<Outcome> =>
  withEgress(context, run, async (ready, domains) => {
    const { machine, manifest } = run
    const details = detailsOf(machine)
    const client = clientOf(context, machine)
    const container = containerName(machine.id)
    const isKept = manifest.machine !== undefined
    if (isKept && (await inspectContainer(client, container, run.detach)) === undefined)
      throw isGone(machine.id)
    assertSameContainer(manifest, details)
    if (manifest.network !== undefined) await run.remember({ network: manifest.network })
    await ready
    await placeInputs({ client, container, blobs: context.runner.blobs, manifest, signal: run.detach })
    const proxy = domains === undefined ? {} : proxyEnvironment(PROXY_URL, domains)
    const command = { ...run.command, env: { ...proxy, ...run.command.env } }
    const isolation = [...details.isolation, describeNetwork(networkFor(manifest, details))]
    const launch = launchRequest({ ...context.runner, run: { ...run, command }, isolation })
    return driveRun({ ...driveOptions(context, run, !isKept), ...launch })
  })

/** Follows the command that an earlier daemon started. */
export const attachToContainer = (context: ProviderContext, run: AttachRequest): Promise<Outcome> =>
  withEgress(context, run, () => driveRun(driveOptions(context, run, false)))

/** Lends the job the proxy for its list of domains, if it has one. */
const withEgress = async (
  context: ProviderContext,
  run: AttachRequest,
  work: (ready: Promise<void> | undefined, domains: readonly string[] | undefined) => Promise<Outcome>,
): Promise<Outcome> => {
  const { machine, manifest } = run
  const details = detailsOf(machine)
  const network = networkFor(manifest, details)
  const domains = typeof network === 'string' ? undefined : network
  const egress =
    domains &&
    openContainerEgress({
      client: clientOf(context, machine),
      container: containerName(machine.id),
      image: details.image?.name ?? '',
      domains,
      signal: run.detach,
    })
  const sampling = sampleContainer({
    client: clientOf(context, machine),
    container: containerName(machine.id),
    isKept: manifest.machine !== undefined,
    ranMs: run.job.startedAt === null ? 0 : Math.max(0, Date.now() - run.job.startedAt),
    signal: run.detach,
  })
  try {
    const outcome = await withLimits(context, run, await work(egress?.ready, domains))
    if (outcome.kind !== 'exit') return outcome
    const resources = sampling.samples
    return resources.length === 0 ? outcome : { kind: 'exit', exit: { ...outcome.exit, resources } }
  } catch (error) {
    if (run.detach.aborted) return { kind: 'detached' }
    if (!(error instanceof AppError)) throw error
    return { kind: 'not-started', error }
  } finally {
    sampling.end()
    await egress?.end()
  }
}

const driveOptions = (context: ProviderContext, run: AttachRequest, isFresh: boolean): RunOptions => {
  const { machine } = run
  const { image, boot, engineLabel } = detailsOf(machine)
  return {
    ...context.runner,
    run,
    context: sealed => openContext(sealed, context.runner.keys),
    host: containerHost({
      client: clientOf(context, machine),
      name: containerName(machine.id),
      machineId: machine.id,
      owner: context.owner,
      image: image?.name ?? '',
      isFresh,
    }),
    bootId: boot,
    begun: performance.now(),
    executedOn: { node: engineLabel ?? 'container', because: `it has the image ${image?.name ?? ''}` },
    ...(image && { image: { name: image.name, digest: image.digest ?? image.id } }),
    // The runner in the container holds the command through any outage of the engine's socket.
    remote: true,
  }
}

/** Adds the memory limit to a failed job that hit it. */
const withLimits = async (
  context: ProviderContext,
  { machine, manifest }: AttachRequest,
  outcome: Outcome,
): Promise<Outcome> => {
  if (outcome.kind !== 'exit' || outcome.exit.code === 0 || outcome.exit.stopped !== null) return outcome
  if (!(await wasOutOfMemory(clientOf(context, machine), containerName(machine.id)))) return outcome
  const memory = manifest.resources?.memory
  const limit = formatSize(memory === undefined ? context.defaults.memory : parseSize(memory))
  const limitsHit = [...outcome.exit.limitsHit, `memory: it used more than ${limit}`]
  return { kind: 'exit', exit: { ...outcome.exit, limitsHit } }
}

const isGone = (id: string): AppError =>
  new AppError('not_found', `The container of machine ${id} no longer exists.`, {
    hint: 'Submit the job without machine.',
  })
