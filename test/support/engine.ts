import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { resolveHome } from '../../src/config/home.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createSecrets } from '../../src/config/resolve-secrets.ts'
import type { Config } from '../../src/config/schema.ts'
import { createEngine, type Engine, type EngineOptions } from '../../src/engine/engine.ts'
import { addToWorkspace } from '../../src/files/add-to-workspace.ts'
import { applyPatch } from '../../src/files/apply-patch.ts'
import { packDirectory } from '../../src/files/pack-directory.ts'
import type { Clock, Provider, Store } from '../../src/ports.ts'
import { createBlobs } from '../../src/store/blob-store.ts'
import { openStore } from '../../src/store/sqlite-store.ts'
import { removeDirectory } from './remove-directory.ts'

export { removeDirectory }

export interface TestClock extends Clock {
  /** Sets the wall clock alone, as an administrator would. */
  jump(ms: number): void
  /** Lets time pass. */
  advance(ms: number): void
  isSynchronized: () => Promise<boolean>
}

export const createTestClock = (): TestClock => {
  let offset = 0
  let passed = 0
  return {
    now: () => Date.now() + offset + passed,
    monotonic: () => performance.now() + passed,
    jump: ms => {
      offset += ms
    },
    advance: ms => {
      passed += ms
    },
    isSynchronized: async () => false,
  }
}

export interface TestEngine extends Engine {
  readonly store: Store
  readonly directory: string
  readonly clock: TestClock
  /** How many sweeps have begun. */
  sweeps(): number
}

export interface EngineSettings
  extends Partial<Pick<EngineOptions, 'batchChild' | 'checkDirectory' | 'fault' | 'log' | 'secrets'>> {
  readonly directory?: string
  readonly config?: (config: Config) => void
  readonly clock?: TestClock
  /** Puts something between the engine and its database. */
  readonly store?: (store: Store) => Store
  /** Called before the start. */
  readonly onCreated?: (engine: Engine) => void
}

/** A real engine on a real database in a directory of its own. */
export const startEngine = async (
  providers: Provider[],
  options: EngineSettings = {},
): Promise<TestEngine> => {
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'deputy-engine-'))
  const { config } = loadConfig(resolveHome({ DEPUTY_HOME: directory }), {})
  config.supervision.grace = 0
  options.config?.(config)
  const store = openStore(join(directory, 'deputy.db'))
  const clock = options.clock ?? createTestClock()
  let sweeps = 0
  const counted: Store = {
    ...(options.store?.(store) ?? store),
    saveKnownTime: async at => {
      sweeps += 1
      await store.saveKnownTime(at)
    },
  }
  const engine = createEngine({
    store: counted,
    blobs: createBlobs(join(directory, 'blobs'), store),
    providers,
    batchChild: options.batchChild ?? (async () => ({})),
    clock,
    secrets: options.secrets ?? createSecrets({}, {}),
    config,
    log: options.log ?? pino({ level: 'silent' }),
    locate: () => undefined,
    pack: packDirectory,
    addToWorkspace,
    applyPatch,
    checkDirectory: options.checkDirectory ?? (async path => path),
    ...(options.fault && { fault: options.fault }),
  })
  options.onCreated?.(engine)
  await engine.start()
  let closed: Promise<void> | undefined
  return {
    ...engine,
    store,
    directory,
    clock,
    sweeps: () => sweeps,
    close: () => (closed ??= engine.close()),
  }
}

/** Waits for a condition with a deadline; never for a length of time. */
export const until = async (
  condition: () => boolean | Promise<boolean>,
  what = 'the condition',
  ms = 90_000,
): Promise<void> => {
  const deadline = performance.now() + ms
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`${what} did not come true within ${ms} ms`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}
