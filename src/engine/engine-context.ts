import type { Logger } from 'pino'
import type { Config } from '../config/schema.ts'
import type { Ballast, Blobs, Clock, Runtime, Secrets, Store } from '../ports.ts'
import type { Signals } from './change-notifier.ts'
import type { PlanContext } from './plan-command.ts'
import type { Readinesses } from './runtime-readiness.ts'

/** What every part of the engine works with. */
export interface EngineContext {
  readonly store: Store
  readonly blobs: Blobs
  readonly ballast?: Ballast
  readonly runtimes: ReadonlyMap<string, Runtime>
  readonly clock: Clock
  readonly secrets: Secrets
  readonly config: Config
  readonly log: Logger
  readonly signals: Signals
  readonly readiness: Readinesses
  /** Aborted when the daemon leaves. */
  readonly closing: AbortSignal
  readonly locate: PlanContext['locate']
  /** Named places where a test kills the process; does nothing otherwise. */
  readonly fault: (point: FaultPoint) => void
}

/** One for each step of a job's life between two durable writes. */
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
