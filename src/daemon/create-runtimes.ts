import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Home } from '../config/home.ts'
import type { Config } from '../config/schema.ts'
import { toAppError } from '../jobs/errors.ts'
import { parseSize } from '../jobs/sizes.ts'
import type { Cluster } from '../nodes/cluster.ts'
import type { Blobs, Runtime } from '../ports.ts'
import { type BatchOptions, createBatchRuntime } from '../providers/batch/batch-runtime.ts'
import { createHostRuntime } from '../providers/host/host-runtime.ts'
import { misconfiguredProxmox } from '../providers/proxmox/misconfigured-runtime.ts'
import { createSandboxRuntime } from '../providers/sandbox/sandbox-runtime.ts'
import { createSshRuntime } from '../providers/ssh/ssh-runtime.ts'
import { isConfigured } from '../proxmox/proxmox-settings.ts'

export interface RuntimesOptions {
  readonly home: Home
  readonly config: Config
  readonly env: NodeJS.ProcessEnv
  readonly blobs: Blobs
  readonly log: Logger
  /** Called for every request that a machine sends to the guest listener. */
  readonly onCall: (kind: string, status: number) => void
  readonly cluster: Cluster
  readonly batch: BatchOptions
}

/** Creates every runtime that the configuration enables. */
export const createRuntimes = async (options: RuntimesOptions): Promise<Runtime[]> => {
  const { config } = options
  return [
    ...(config.proxmox.enabled && isConfigured(options.env) ? [await proxmox(options)] : []),
    ...(config.sandbox.enabled ? [sandbox(options)] : []),
    ...(config.host.allow ? [createHostRuntime(local(options))] : []),
    ...nodes(options),
    createBatchRuntime(options.batch),
  ]
}

/** Loaded only when a cluster is configured. An invalid setting must not disable the other runtimes. */
const proxmox = async ({ home, config, env, blobs, log, onCall }: RuntimesOptions): Promise<Runtime> => {
  try {
    const { proxmoxFromConfig } = await import('../providers/proxmox/proxmox-from-config.ts')
    return await proxmoxFromConfig({
      env,
      stateDir: home.stateDir,
      cacheDir: join(home.cacheDir, 'proxmox'),
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

/** Options that both runtimes of this computer share. */
const local = ({ home, config, blobs, log }: RuntimesOptions) => ({
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
const nodes = (options: RuntimesOptions): Runtime[] => {
  const { cluster } = options
  const { blobs, keep, graceSeconds } = local(options)
  const keyFile = join(options.home.stateDir, 'cluster', 'memo.key')
  const common = { cluster, blobs, keep, graceSeconds, keyFile }
  return [createSshRuntime(common), createSshRuntime({ ...common, routed: true })]
}

const sandbox = (options: RuntimesOptions): Runtime => {
  const { defaults, limits, sandbox } = options.config
  return createSandboxRuntime({
    ...local(options),
    defaults: {
      cpu: defaults.cpu,
      memory: parseSize(defaults.memory),
      processes: limits.processes,
      ...(defaults.disk !== undefined && { disk: parseSize(defaults.disk) }),
    },
    ...(sandbox.backend !== 'auto' && { backend: sandbox.backend }),
  })
}
