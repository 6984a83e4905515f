import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Home } from '../config/home.ts'
import type { Config } from '../config/schema.ts'
import { toAppError } from '../jobs/errors.ts'
import { parseSize } from '../jobs/sizes.ts'
import type { Cluster } from '../nodes/cluster.ts'
import type { Blobs, Provider } from '../ports.ts'
import { createContainerProvider } from '../providers/container/container-provider.ts'
import { createHostProvider } from '../providers/host/host-provider.ts'
import { createMicrovmProvider } from '../providers/microvm/microvm-provider.ts'
import { misconfiguredProxmox } from '../providers/proxmox/misconfigured-provider.ts'
import { createSandboxProvider } from '../providers/sandbox/sandbox-provider.ts'
import { createSshProvider } from '../providers/ssh/ssh-provider.ts'
import { isConfigured } from '../proxmox/proxmox-settings.ts'

export interface ProvidersOptions {
  readonly home: Home
  readonly config: Config
  readonly env: NodeJS.ProcessEnv
  readonly blobs: Blobs
  readonly log: Logger
  /** Called for every request that a machine sends to the guest listener. */
  readonly onCall: (kind: string, status: number) => void
  readonly cluster: Cluster
  readonly fleetKey?: Buffer | undefined
  /** Whether jobs may run on this computer without isolation; may change while the daemon runs. */
  readonly hostAccess: { readonly allowed: boolean }
}

/** Creates every provider that the configuration enables. */
export const createProviders = async (options: ProvidersOptions): Promise<Provider[]> => {
  const { config } = options
  return [
    ...(config.proxmox.enabled && isConfigured(options.env) ? [await proxmox(options)] : []),
    ...(config.sandbox.enabled ? [sandbox(options)] : []),
    ...(config.container.enabled ? [container(options)] : []),
    ...(config.microvm.enabled ? [microvm(options)] : []),
    createHostProvider({ ...local(options), access: options.hostAccess }),
    ...nodes(options),
  ]
}

/** Loaded only when a cluster is configured. An invalid setting must not disable the other providers. */
const proxmox = async ({ home, config, env, blobs, log, onCall }: ProvidersOptions): Promise<Provider> => {
  try {
    const { proxmoxFromConfig } = await import('../providers/proxmox/proxmox-from-config.ts')
    return await proxmoxFromConfig({
      env,
      stateDir: home.stateDir,
      cacheDir: join(home.cacheDir, 'proxmox'),
      trustFile: home.trustedHosts,
      proxmox: config.proxmox,
      callback: config.callback,
      defaults: config.defaults,
      keep: config.keep,
      graceSeconds: config.supervision.grace,
      blobs,
      log,
      onCall,
    })
  } catch (error) {
    log.error({ err: error }, 'cannot start the proxmox runtime')
    return misconfiguredProxmox(toAppError(error))
  }
}

/** Options that both providers of this computer share. */
const local = ({ home, config, blobs, log }: ProvidersOptions) => ({
  stateDir: home.stateDir,
  blobs,
  limit: config.limits.running,
  keep: {
    head: config.keep.outputHead,
    tail: config.keep.outputTail,
    artifactFiles: config.keep.artifactFiles,
    artifactBytes: config.keep.artifactBytes,
    patchBytes: config.keep.patchBytes,
  },
  graceSeconds: config.supervision.grace,
  log: (message: string, fields: Record<string, unknown>) => log.info(fields, message),
})

/** Isolated jobs on nodes, and routed commands, which run on nodes without isolation. */
const nodes = (options: ProvidersOptions): Provider[] => {
  const { cluster, fleetKey } = options
  const { blobs, keep, graceSeconds } = local(options)
  const keyFile = join(options.home.stateDir, 'cluster', 'memo.key')
  const common = { cluster, blobs, keep, graceSeconds, keyFile, fleetKey }
  return [createSshProvider(common), createSshProvider({ ...common, routed: true })]
}

const container = (options: ProvidersOptions): Provider => {
  const { config, env } = options
  const { host, image, users, runtimeClass, warm, warmAge } = config.container
  const { log: _, ...common } = local(options)
  return createContainerProvider({
    ...common,
    env,
    owner: options.cluster.owner,
    fleetKey: options.fleetKey,
    host,
    image,
    users,
    runtimeClass,
    warm,
    warmAgeSeconds: warmAge,
    allow: config.images.allow,
    defaults: jobDefaults(config),
  })
}

const microvm = (options: ProvidersOptions): Provider => {
  const { config, home, cluster } = options
  const { image, warm, warmAge } = config.microvm
  // More than one processor makes an emulated VM slower: a job that needs them asks for them.
  const { cpu: _, ...defaults } = jobDefaults(config)
  return createMicrovmProvider({
    ...local(options),
    owner: cluster.owner,
    imagesDir: home.vmImages,
    image,
    warm,
    warmAgeSeconds: warmAge,
    defaults,
  })
}

/** Resources of a job that asks for none. */
const jobDefaults = ({ defaults, limits }: Config) => ({
  cpu: defaults.cpu,
  memory: parseSize(defaults.memory),
  processes: limits.processes,
  ...(defaults.disk !== undefined && { disk: parseSize(defaults.disk) }),
})

const sandbox = (options: ProvidersOptions): Provider => {
  const { sandbox } = options.config
  return createSandboxProvider({
    ...local(options),
    defaults: jobDefaults(options.config),
    ...(sandbox.backend !== 'auto' && { backend: sandbox.backend }),
  })
}
