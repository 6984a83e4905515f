/**
 * The TypeScript client of Deputy: submit jobs, follow them, and bring back what they did.
 *
 * @module
 * @example
 * ```ts
 * import { connect } from 'deputy-mcp'
 *
 * const deputy = await connect()
 * const result = await deputy.run('echo hello from $(hostname)')
 * console.log(result.status, result.output)
 * await deputy.close()
 * ```
 */
export type { JobResult, JobSummary, JobView, MachineView } from '../engine/deputy.ts'
export type { Unpacked } from '../files/unpack-received.ts'
export { AppError as DeputyError, type ErrorCode } from '../jobs/errors.ts'
export type { Artifact, JobEvent } from '../jobs/job.ts'
export type { ManifestInput as Manifest } from '../jobs/manifest.ts'
export type { JobState } from '../jobs/states.ts'
export { type ConnectOptions, connect, type DeputyClient, type RunOptions } from './connect.ts'
export type { Forward, ForwardOptions } from './forward-port.ts'
export type { JobHandle, OutputText } from './job-handle.ts'
export type { Shell, ShellOptions } from './open-shell.ts'
