import { setMaxListeners } from 'node:events'
import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import type { CheckDirectory } from '../jobs/allowed-directories.ts'
import type { Ballast, Blobs, Clock, Fleet, Provider, Secrets, Store } from '../ports.ts'
import type { PackDirectory } from './accept-job.ts'
import { type ActiveJobs, createActiveJobs } from './active-jobs.ts'
import { createChangeNotifier } from './change-notifier.ts'
import { daemonOperations } from './daemon-operations.ts'
import type { Deputy } from './deputy.ts'
import { createDispatcher } from './dispatcher.ts'
import type { EngineContext } from './engine-context.ts'
import { shareChanges } from './fleet-changes.ts'
import { createHistory } from './history.ts'
import { createJobLookup } from './job-lookup.ts'
import { createDisposal } from './machine-disposal.ts'
import { createPool } from './machine-pool.ts'
import { type AddToWorkspace, createNeededJobs } from './needed-jobs.ts'
import type { PlanContext } from './plan-command.ts'
import { createReadinessCache, hasSlots } from './provider-readiness.ts'
import { outputOperations, readOperations } from './read-operations.ts'
import { recover } from './recover.ts'
import { createResume } from './resume-machine.ts'
import { type ApplyPatch, reviewOperations } from './review-operations.ts'
import type { BatchOptions } from './run-batch.ts'
import { createSweeper } from './sweeper.ts'
import { jobOperations, machineOperations } from './write-operations.ts'

export interface EngineOptions {
  readonly store: Store
  /** The other daemons on the same database. */
  readonly fleet?: Fleet
  readonly blobs: Blobs
  readonly ballast?: Ballast
  readonly providers: readonly Provider[]
  /** Returns the manifest for one command of a batch. Throws when the command is not allowed. */
  readonly batchChild: BatchOptions['child']
  readonly clock: Clock
  readonly secrets: Secrets
  readonly config: Config
  readonly log: Logger
  readonly locate: PlanContext['locate']
  readonly pack: PackDirectory
  readonly addToWorkspace: AddToWorkspace
  readonly checkDirectory: CheckDirectory
  readonly applyPatch: ApplyPatch
  readonly fault?: EngineContext['fault']
}

export interface Engine {
  readonly deputy: Deputy
  /** Recovers the jobs of an earlier daemon, then starts to claim jobs. */
  start(): Promise<void>
  /** Returns the cached readiness of each provider. */
  readiness(): { name: string; ready: boolean; reason?: string }[]
  /** Detaches from all jobs without stopping them, and closes the store. */
  close(): Promise<void>
}

export const createEngine = (options: EngineOptions): Engine => {
  const closing = new AbortController()
  // Every run adds a listener, and the number of runs is configurable.
  setMaxListeners(0, closing.signal)
  const providers = new Map(options.providers.map(provider => [provider.name, provider]))
  const shared = options.fleet && shareChanges(options.fleet)
  const context: EngineContext = {
    ...options,
    providers,
    changes: shared?.changes ?? createChangeNotifier(),
    readiness: createReadinessCache(providers, options.clock),
    closing: closing.signal,
    fault: options.fault ?? (() => {}),
  }
  const disposal = createDisposal(context)
  const dispatcher = createDispatcher(context, (): ActiveJobs => activeJobs)
  const pool = createPool(context, disposal)
  let recovered = false
  const activeJobs = createActiveJobs(context, {
    disposal,
    batches: { children: () => deputy, child: options.batchChild },
    onFree: () => {
      dispatcher.wake()
      if (recovered) pool.refill()
    },
  })
  const neededJobs = createNeededJobs(context, {
    addToWorkspace: options.addToWorkspace,
    onReleased: () => dispatcher.wake(),
  })
  const sweeper = createSweeper(context, { activeJobs, disposal, pool })

  const resume = createResume(context, activeJobs, disposal)
  const history = createHistory(context)
  const lookup = createJobLookup(context)
  const parts = { lookup, local: options, activeJobs, dispatcher, disposal, neededJobs }
  const operations = jobOperations(context, parts)
  const deputy: Deputy = {
    ...readOperations(context, lookup),
    ...outputOperations(context, lookup),
    ...operations,
    ...reviewOperations(context, { lookup, local: options, submit: operations.submit }),
    ...machineOperations(context, parts),
    ...daemonOperations(options.fleet),
    history: history.read,
    onChange: context.changes.onChange,
  }

  return {
    deputy,
    start: async () => {
      await context.blobs.removeUnfinished()
      await recover(context, activeJobs, resume)
      recovered = true
      void context.readiness.checkAll(closing.signal)
      await neededJobs.start()
      shared?.start(context, { activeJobs, dispatcher, resume })
      await options.fleet?.announce(
        [...providers.values()].filter(hasSlots).map(({ name, slots }) => ({ name, slots })),
      )
      dispatcher.start()
      sweeper.start()
      history.start()
    },
    readiness: () =>
      [...providers.values()].filter(hasSlots).map(({ name }) => {
        const known = context.readiness.known(name)
        const failed = known?.checks.find(check => check.status === 'failed')
        return { name, ready: known?.ready ?? true, ...(failed && { reason: failed.message }) }
      }),
    close: async () => {
      closing.abort()
      await dispatcher.idle()
      await neededJobs.idle()
      await activeJobs.idle()
      await disposal.idle()
      await Promise.allSettled([...providers.values()].map(provider => provider.close()))
      await context.store.close()
    },
  }
}
