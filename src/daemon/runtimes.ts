import type { Logger } from 'pino'
import type { Home } from '../config/home.ts'
import type { Config } from '../config/schema.ts'
import { parseSize } from '../jobs/sizes.ts'
import type { Blobs, Runtime } from '../ports.ts'
import { createHostRuntime } from '../runtimes/host/index.ts'
import { createSandboxRuntime } from '../runtimes/sandbox/index.ts'

export interface RuntimesOptions {
  readonly home: Home
  readonly config: Config
  readonly env: NodeJS.ProcessEnv
  readonly blobs: Blobs
  readonly log: Logger
}

/** Every runtime the configuration asks for. */
export const createRuntimes = async (options: RuntimesOptions): Promise<Runtime[]> => {
  const { config } = options
  return [
    ...(config.sandbox.enabled ? [sandbox(options)] : []),
    ...(config.host.allow ? [createHostRuntime(local(options))] : []),
  ]
}

/** What both runtimes of this computer share. */
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
