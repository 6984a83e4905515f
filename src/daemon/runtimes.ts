import type { Logger } from 'pino'
import type { Home } from '../config/home.ts'
import type { Config } from '../config/schema.ts'
import type { Blobs, Runtime } from '../ports.ts'

export interface RuntimesOptions {
  readonly home: Home
  readonly config: Config
  readonly env: NodeJS.ProcessEnv
  readonly blobs: Blobs
  readonly log: Logger
}

/** Every runtime the configuration asks for. */
export const createRuntimes = async (_options: RuntimesOptions): Promise<Runtime[]> => []
