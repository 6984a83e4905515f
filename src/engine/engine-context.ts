import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import type { Ballast, Blobs, Clock, Fleet, Provider, Secrets, Store } from '../ports.ts'
import type { ChangeNotifier } from './change-notifier.ts'
import type { PlanContext } from './plan-command.ts'
import type { ReadinessCache } from './provider-readiness.ts'

/** The dependencies that all parts of the engine share. */
export interface EngineContext {
  readonly store: Store
  readonly fleet?: Fleet
  readonly blobs: Blobs
  readonly ballast?: Ballast
  readonly providers: ReadonlyMap<string, Provider>
  readonly clock: Clock
  readonly secrets: Secrets
  readonly config: Config
  readonly log: Logger
  readonly changes: ChangeNotifier
  readonly readiness: ReadinessCache
  /** Aborted when the daemon shuts down. */
  readonly closing: AbortSignal
  readonly locate: PlanContext['locate']
  /** Called at named points, where fault tests kill the process. Does nothing in production. */
  readonly fault: (point: FaultPoint) => void
}

/** One point for each step of a job between two durable writes. */
export const FAULT_POINTS = [
  'submitted',
  'claimed',
  'provisioned',
  'starting',
  'started',
  'output',
  'exited',
  'settled',
  'destroying',
  'destroyed',
] as const

export type FaultPoint = (typeof FAULT_POINTS)[number]
