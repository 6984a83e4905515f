/** The interfaces that the engine depends on. Providers, the store, blobs, clocks and secrets implement them. */
export type { Ballast } from './ports/ballast.ts'
export type { Blobs } from './ports/blobs.ts'
export type { Clock } from './ports/clock.ts'
export type { DaemonRecord, Fleet } from './ports/fleet.ts'
export type { CreateRequest, FoundMachine, Machine, MachineRecord } from './ports/machine.ts'
export type { Check, Fit, Provider, Readiness } from './ports/provider.ts'
export type {
  AttachRequest,
  CommandSpec,
  Exit,
  Outcome,
  Run,
  Sink,
  SinkBatch,
  StopReason,
} from './ports/run.ts'
export type { Secrets } from './ports/secrets.ts'
export type { Session, SessionRequest, TerminalSize } from './ports/session.ts'
export type {
  Claimed,
  ClaimRequest,
  EventBody,
  Inserted,
  JobChanges,
  JobQuery,
  NeededJob,
  NewEvent,
  NewJob,
  OutputWrite,
  RetentionPolicy,
  Store,
} from './ports/store.ts'
