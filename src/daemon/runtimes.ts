import type { Logger } from 'pino'
import type { Home } from '../config/home.ts'
import type { Config } from '../config/schema.ts'
import { parseSize } from '../jobs/sizes.ts'
import type { Blobs, Runtime } from '../ports.ts'
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
  return [...(config.sandbox.enabled ? [sandbox(options)] : [])]
}

const sandbox = ({ home, config, blobs, log }: RuntimesOptions): Runtime => {
  const { backend } = config.sandbox
  return createSandboxRuntime({
    stateDir: home.stateDir,
    blobs,
    limit: config.limits.running,
    defaults: {
      cpu: config.defaults.cpu,
      memory: parseSize(config.defaults.memory),
      processes: config.limits.processes,
      ...(config.defaults.disk !== undefined && { disk: parseSize(config.defaults.disk) }),
    },
    keep: {
      head: config.keep.outputHead,
      tail: config.keep.outputTail,
      artifactFiles: config.keep.artifactFiles,
      artifactBytes: config.keep.artifactBytes,
      patchBytes: config.keep.patchBytes,
    },
    graceSeconds: config.supervision.grace,
    ...(backend !== 'auto' && { backend }),
    log: (message, fields) => log.info(fields, message),
  })
}
