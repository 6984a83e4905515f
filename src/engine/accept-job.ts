import { createHash } from 'node:crypto'
import type { Config } from '../config/schema.ts'
import type { CheckDirectory } from '../jobs/allowed-directories.ts'
import { BATCH, batchCommand, parseBatch } from '../jobs/batch-command.ts'
import { AppError } from '../jobs/errors.ts'
import { newId } from '../jobs/ids.ts'
import { WORKSPACE_LABEL } from '../jobs/labels.ts'
import { LIMITS } from '../jobs/limits.ts'
import { type Manifest, parseManifest } from '../jobs/manifest.ts'
import { SANDBOX_FIRST } from '../jobs/provider-order.ts'
import { parseSize } from '../jobs/sizes.ts'
import type { Inserted } from '../ports.ts'
import { batchTimeout } from './agent-members.ts'
import { assertFits, chooseProvider } from './choose-provider.ts'
import type { SubmitOptions } from './deputy.ts'
import type { EngineContext } from './engine-context.ts'
import { titleOf } from './job-views.ts'
import { checkNeeds } from './needed-jobs.ts'
import { type CommandPlan, planCommand, withNetwork } from './plan-command.ts'
import { checkSecretUse, mustForbidNetwork, secretUse } from './secret-policy.ts'

export interface Submission extends SubmitOptions {
  readonly manifest: unknown
  readonly origin: string
}

/** Packs a local directory into a tar stream. Injected, because it reads the files of the user. */
export type PackDirectory = (path: string) => AsyncIterable<Uint8Array>

export interface LocalDirectories {
  readonly pack: PackDirectory
  readonly checkDirectory: CheckDirectory
}

/**
 * Validates a submission and stores the job. Everything that can be rejected is rejected here, before the job is stored.
 */
export const acceptJob = async (
  context: EngineContext,
  local: LocalDirectories,
  { manifest: input, origin, parentId, directories = [] }: Submission,
  onWriting: (runtime: string) => void,
): Promise<Inserted & { readonly because: string; readonly needs: readonly string[] }> => {
  const asked = parseManifest(input)
  const { store, clock, config } = context
  await refuseFullQueue(context)
  refuseFullDisk(context)
  await checkNeeds(context, asked.needs)
  const id = newId(clock.now())
  const timeoutSeconds = asked.timeout ?? config.defaults.timeout
  const plan = planCommand(asked, {
    jobId: id,
    presets: config.agents,
    secretNames: context.secrets.names(),
    timeoutSeconds,
    claudeBaseUrl: config.claude.baseUrl,
    locate: context.locate,
  })
  const restricted = withForbiddenNetwork(asked, plan, origin, config)
  const chosen = await providerFor(context, withNetwork(restricted, plan))
  checkSecretUse(
    plan.secretNames,
    secretUse(restricted, plan, { runtime: chosen.name, origin }),
    config.secrets,
  )
  // The provider is that of the members: the batch itself has no machine.
  const runtime = asked.agents === undefined ? chosen.name : BATCH
  const { because } = chosen
  const manifestHash = digest(asked)
  const checkDirectory = (path: string) => local.checkDirectory(path, directories)
  const checked = await withRealDirectories(restricted, runtime, checkDirectory)
  const labelled = directories === 'any' ? checked : await withCheckedLabel(checked, checkDirectory)
  const manifest = await withWorkspace(context, local.pack, labelled, id)
  const inserting = store.insertJob({
    id,
    manifest,
    manifestHash,
    title: titleOf(asked.task),
    runtime,
    origin: origin.slice(0, 100),
    createdAt: clock.now(),
    timeoutSeconds: asked.agents === undefined ? timeoutSeconds : batchTimeout(timeoutSeconds, asked.agents),
    // A job that needs others gets its limit when these have succeeded.
    ...(asked.needs === undefined && {
      queueUntil: clock.now() + (asked.queueTimeout ?? config.defaults.queueTimeout) * 1000,
    }),
    ...(parentId !== undefined && { parentId }),
    ...(isBoundToComputer(runtime) && { wantsDaemon: store.daemon }),
  })
  onWriting(runtime)
  const submitted = await inserting
  context.fault('submitted')
  return { ...submitted, because, needs: asked.needs ?? [] }
}

/** A command without isolation is for this computer; so are the commands of a batch, which may be routed here. */
const isBoundToComputer = (runtime: string): boolean => runtime === 'host' || runtime === BATCH

/** If a secret must not be combined with network access, require a provider that guarantees to block the network. */
const withForbiddenNetwork = (
  manifest: Manifest,
  plan: CommandPlan,
  origin: string,
  config: Config,
): Manifest =>
  plan.network === 'none' && mustForbidNetwork(plan.secretNames, origin, config.secrets)
    ? { ...manifest, network: 'none' }
    : manifest

const refuseFullQueue = async ({ store, config }: EngineContext): Promise<void> => {
  const pending = await store.pending()
  if (pending < config.limits.queue) return
  throw new AppError(
    'queue_full',
    `The queue is full: ${pending} jobs are waiting, the limit is ${config.limits.queue}.`,
    {
      hint: 'Submit again later, or raise limits.queue in the configuration.',
    },
  )
}

/** The reserved disk space is for running jobs, not for new ones. */
const refuseFullDisk = ({ ballast }: EngineContext): void => {
  if (ballast === undefined || ballast.restore()) return
  throw new AppError('unavailable', 'The disk is full: no new jobs are accepted.', {
    hint: 'Free disk space below the state directory: deputy daemon status shows its path.',
  })
}

interface ChosenProvider {
  readonly name: string
  readonly because: string
}

const providerFor = async (context: EngineContext, manifest: Manifest): Promise<ChosenProvider> => {
  if (manifest.machine !== undefined)
    return {
      name: await keptProvider(context, manifest, manifest.machine),
      because: 'the kept machine is there',
    }
  if (manifest.runtime === BATCH) return { name: checkBatch(manifest), because: 'it is a batch' }
  const wanted = manifest.runtime === 'auto' ? context.config.defaults.runtime : manifest.runtime
  const choose = (): ChosenProvider => {
    const { provider, because } = chooseProvider(manifest, wanted, {
      order: context.config.defaults.order ?? SANDBOX_FIRST,
      providers: context.providers,
      readiness: context.readiness.known,
    })
    return { name: provider.name, because }
  }
  try {
    return choose()
  } catch (error) {
    // A provider that failed its last check may work again: check once more before rejecting the job.
    if (!(await context.readiness.recheck(context.closing))) throw error
    return choose()
  }
}

const checkBatch = ({ agent }: Manifest): string => {
  if (parseBatch(agent?.command) !== undefined) return BATCH
  throw new AppError(
    'unsupported',
    "The job is not a batch: its 'agent.command' is not a list of commands.",
    {
      hint: "Set agentType to 'custom' and agent.command to ['parallel', '--', 'first command', …], or change 'runtime'.",
    },
  )
}

const keptProvider = async (
  { store, providers }: EngineContext,
  manifest: Manifest,
  id: string,
): Promise<string> => {
  const machine = await store.getMachine(id)
  if (machine === undefined || machine.state === 'destroying')
    throw new AppError('not_found', `No machine '${id}'.`, {
      hint: 'deputy machines lists kept machines. The lease may have ended.',
    })
  const provider = providers.get(machine.runtime)
  if (provider !== undefined) assertFits(provider, manifest)
  return machine.runtime
}

/** Checks and resolves every local directory that the manifest names. */
const withRealDirectories = async (
  manifest: Manifest,
  runtime: string,
  checkDirectory: (path: string) => Promise<string>,
): Promise<Manifest> => {
  const { workspace, agent } = manifest
  if (workspace?.path !== undefined)
    return { ...manifest, workspace: { ...workspace, path: await checkDirectory(workspace.path) } }
  // The daemon itself submits the jobs of a batch later, so their directory is checked now.
  const batch = runtime === BATCH ? parseBatch(agent?.command) : undefined
  if (batch?.cwd === undefined) return manifest
  const command = batchCommand({ ...batch, cwd: await checkDirectory(batch.cwd) })
  return { ...manifest, agent: { ...agent, command } }
}

/** The label says where a review applies the changes: only a directory that the client may use. */
const withCheckedLabel = async (
  manifest: Manifest,
  checkDirectory: (path: string) => Promise<string>,
): Promise<Manifest> => {
  const { [WORKSPACE_LABEL]: source, ...labels } = manifest.labels ?? {}
  if (source === undefined) return manifest
  const checked = await checkDirectory(source).catch(() => undefined)
  return { ...manifest, labels: { ...labels, ...(checked !== undefined && { [WORKSPACE_LABEL]: checked }) } }
}

/** Packs the workspace now: later changes in the directory do not affect the job. */
const withWorkspace = async (
  context: EngineContext,
  pack: PackDirectory,
  manifest: Manifest,
  jobId: string,
): Promise<Manifest> => {
  const { workspace } = manifest
  if (workspace?.path !== undefined) {
    const maxBytes = parseSize(context.config.limits.upload)
    const blob = await context.blobs.put(pack(workspace.path), maxBytes, jobId)
    // The last one wins: the directory that was read, whatever the client calls it.
    const labels = { ...manifest.labels, [WORKSPACE_LABEL]: workspace.path.slice(0, 256) }
    return {
      ...manifest,
      workspace: { blob: blob.sha256, patch: workspace.patch },
      ...(Object.keys(labels).length <= LIMITS.labels && { labels }),
    }
  }
  if (workspace?.blob !== undefined && !(await context.blobs.hold(workspace.blob, jobId)))
    throw new AppError('not_found', `No upload with sha256 '${workspace.blob}'.`, {
      hint: 'Upload the tar first (PUT /api/blobs); unused uploads are kept for an hour.',
    })
  const size = JSON.stringify(manifest).length
  if (size > LIMITS.manifestBytes)
    throw new AppError('too_large', `The manifest has ${size} bytes; ${LIMITS.manifestBytes} are allowed.`, {
      hint: "Send large inputs as a workspace (deputy run --workspace DIR, or 'workspace.path').",
    })
  return manifest
}

const digest = (manifest: Manifest): string => createHash('sha256').update(stable(manifest)).digest('hex')

/** Serializes with sorted keys, so that the order of keys does not change the hash. */
const stable = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
