import type { Machine } from '../../ports.ts'
import type { RunOptions } from '../../runner/run.ts'
import type { SealingKeys } from '../../runner/sealed-context.ts'
import type { Engines } from './container-engine.ts'
import type { ContainerDefaults } from './container-spec.ts'
import type { EngineClient } from './engine-client.ts'
import { detailsOf } from './machine-details.ts'

/** What the parts of the provider share. */
export interface ProviderContext {
  readonly runner: Pick<RunOptions, 'blobs' | 'keep' | 'graceSeconds'> & {
    /** Seal the context of a run. */
    readonly keys: SealingKeys
  }
  readonly engines: Engines
  readonly owner: string
  readonly env: NodeJS.ProcessEnv
  /** The user's home directory. */
  readonly home: string
  readonly defaults: ContainerDefaults
  /** The setting `container.image`. */
  readonly image?: string | undefined
  /** The setting `images.allow`. */
  readonly allow: readonly string[]
  readonly users: Readonly<Record<string, string>>
  readonly runtimeClass?: string | undefined
}

/** The engine that has the container of a machine, or that gets it. */
export const clientOf = ({ engines }: Pick<ProviderContext, 'engines'>, machine: Machine): EngineClient => {
  const { engine } = detailsOf(machine)
  return engine === undefined ? engines.current() : engines.at(engine)
}
