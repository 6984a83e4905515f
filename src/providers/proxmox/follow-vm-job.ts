import { AppError } from '../../jobs/errors.ts'
import type { AttachRequest, Exit, Outcome, StopReason } from '../../ports.ts'
import { proxmoxDetails } from '../../proxmox/proxmox-errors.ts'
import { signalOf } from '../../runner/signals.ts'
import { stopVm, type Target } from './destroy-vm.ts'
import type { GuestSessions } from './guest-sessions.ts'
import { locateVm } from './locate-vm.ts'
import type { NodeReaches } from './node-reach.ts'
import { outlivesJob } from './outlives-job.ts'
import type { OutputReceiver } from './output-receiver.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import { type CollectedFiles, type Details, detailsOf, type Finished } from './vm-details.ts'
import { networkIsolation } from './vm-isolation.ts'

export interface FollowVmJobOptions {
  readonly provider: Pick<
    ProxmoxProviderOptions,
    'proxmox' | 'log' | 'channel' | 'graceSeconds' | 'heartbeatSeconds' | 'owner' | 'pool' | 'vmids'
  >
  readonly sessions: GuestSessions
  readonly reaches: NodeReaches
  readonly run: AttachRequest
  readonly details: Details
  readonly outputReceiver: OutputReceiver
  /** Set by the job handler. */
  readonly state: {
    startedAt: number | undefined
    finished: Finished | undefined
    refused: string | undefined
    /** When the stop request was sent to the machine. */
    stopSentAt: number | undefined
    /** When the last part of its files arrived. */
    lastFileAt: number | undefined
  }
  /** What the job may reach through our proxy. */
  readonly domains?: readonly string[]
  /** The files that have arrived so far. */
  collected(): CollectedFiles
  /** Called when the machine is found on another node. */
  moved(node: string): Promise<void>
  /** Whether the machine is still one of ours. */
  present(): boolean
  readonly phases: Readonly<Record<string, number>>
}

/** How often Proxmox VE is asked about the machine. */
const CHECK_MS = 10_000
/** How long a machine that has the order may be silent before the command has started. */
const START_MS = 600_000
/** How long to wait for the final report after a stop request. */
const FINAL_REPORT_MS = 15_000
/**
 * A machine that does not receive a cancel within two heartbeats and this time is stopped. One heartbeat may be lost
 * while the daemon restarts, and a busy machine sends the next one late.
 */
const LATE_HEARTBEAT_MS = 3000
/** How long to wait for files after a timeout; the engine waits no longer either. */
const FILES_MS = 40_000
const MAX_STOP_MS = FINAL_REPORT_MS + FILES_MS

/** Follows a job until the machine reports its end, or Proxmox VE reports the end of the machine. */
export const followVmJob = async (options: FollowVmJobOptions): Promise<Outcome> => {
  const { provider, sessions, run, state } = options
  const { clock } = provider.proxmox
  const machineId = run.machine.id
  const wake = () => sessions.notify(machineId)
  const beganAt = clock.now()
  // The deadline counts from the request, even if the machine is being looked at when it arrives.
  let stopAskedAt = run.stop.aborted ? beganAt : undefined
  const onStop = () => {
    stopAskedAt = clock.now()
    wake()
  }
  run.stop.addEventListener('abort', onStop)
  run.detach.addEventListener('abort', wake)
  // After a restart the machine may be gone: check at once.
  let checkAt = clock.now() + (state.startedAt === undefined ? CHECK_MS : 0)
  let isRecordGone = false
  let { node } = options.details
  try {
    for (;;) {
      if (state.finished) return { kind: 'exit', exit: toExit(options, state.finished) }
      if (state.refused !== undefined)
        return {
          kind: 'not-started',
          error: new AppError('invalid', `The machine refused the job: ${state.refused}.`),
        }
      if (run.detach.aborted) return { kind: 'detached' }
      if (!isRecordGone && !options.present()) {
        isRecordGone = true
        checkAt = 0
      }
      // Stop at once before the command has started, and when the machine is stale: it does not report any more.
      if (
        stopAskedAt !== undefined &&
        (state.startedAt === undefined ||
          reasonOf(run).kind === 'stale' ||
          clock.now() >= deadline(options, stopAskedAt))
      )
        return await stopMachine(options)
      if (state.startedAt === undefined && silence(options, beganAt) > START_MS)
        return ended(undefined, `VM ${options.details.vmid} has the job, but is not heard of any more`)
      if (clock.now() >= checkAt) {
        checkAt = clock.now() + CHECK_MS
        const gone = await checkMachine(options, node, async next => {
          node = next
          await options.moved(next)
        })
        if (gone && !state.finished) return gone
        // A change during the check wakes nobody; check again.
        continue
      }
      const stopAt = stopAskedAt === undefined ? checkAt : deadline(options, stopAskedAt)
      const next = Math.min(checkAt, stopAt) - clock.now()
      await sessions.change(machineId, Math.max(50, next), run.detach)
    }
  } finally {
    run.stop.removeEventListener('abort', onStop)
    run.detach.removeEventListener('abort', wake)
  }
}

const silence = ({ provider, sessions, run }: FollowVmJobOptions, beganAt: number): number =>
  provider.proxmox.clock.now() - Math.max(beganAt, sessions.get(run.machine.id)?.lastContact ?? 0)

/**
 * When the machine is stopped from outside. A cancelled job does not wait for its files, nor for a machine that does not
 * receive the request; a job that timed out waits for its files.
 */
const deadline = (
  { provider, run, state: { stopSentAt, lastFileAt } }: FollowVmJobOptions,
  stopAskedAt: number,
): number => {
  const graceMs = provider.graceSeconds * 1000
  const stopAt = stopAskedAt + graceMs + FINAL_REPORT_MS
  if (reasonOf(run).kind !== 'timeout')
    return stopSentAt === undefined
      ? Math.min(
          stopAt,
          stopAskedAt + Math.max(graceMs, 2 * provider.heartbeatSeconds * 1000 + LATE_HEARTBEAT_MS),
        )
      : Math.min(stopSentAt + graceMs + FINAL_REPORT_MS, stopAskedAt + graceMs + MAX_STOP_MS)
  return lastFileAt === undefined
    ? stopAt
    : Math.min(stopAt + FILES_MS, Math.max(stopAt, lastFileAt + FINAL_REPORT_MS))
}

/** The outcome of a machine that is off or gone. Errors of the cluster say nothing about the machine. */
const checkMachine = async (
  { provider, run, details: { vmid }, state }: FollowVmJobOptions,
  node: string,
  moved: (node: string) => Promise<void>,
): Promise<Outcome | undefined> => {
  try {
    const found = await locateVm(provider.proxmox, { node, vmid }, run.detach)
    if (state.finished) return undefined
    if (found.kind === 'gone') return ended(state.startedAt, `VM ${vmid} does not exist any more`)
    if (found.kind === 'hidden') return undefined
    if (found.node !== node) await moved(found.node)
    if (found.running) return undefined
    return ended(state.startedAt, `VM ${vmid} was switched off before it reported a result`)
  } catch (error) {
    if (proxmoxDetails(error)?.kind === 'unauthorized')
      provider.log.warn({ job: run.job.id }, 'the Proxmox VE token is refused while a job runs')
    return undefined
  }
}

const ended = (startedAt: number | undefined, what: string): Outcome => {
  if (startedAt === undefined)
    return {
      kind: 'not-started',
      error: new AppError('unavailable', `${what}.`, { hint: 'It is tried again with another machine.' }),
    }
  return {
    kind: 'lost',
    error: new AppError('unavailable', `${what}.`, {
      hint: 'The command had started: what it did is not known. Submit the job again.',
    }),
  }
}

/** Stops the machine from outside. Output that has arrived is kept. */
const stopMachine = async ({
  provider,
  run,
  details,
  state,
  outputReceiver,
  ...rest
}: FollowVmJobOptions): Promise<Outcome> => {
  if (state.startedAt !== undefined || !outlivesJob(run))
    await stopVm(provider.proxmox, targetOf(provider, run, details), AbortSignal.timeout(60_000)).catch(
      error =>
        provider.log.warn(
          { vmid: details.vmid, reason: (error as Error).message },
          'a machine could not be stopped; it is destroyed with its record',
        ),
    )
  if (state.finished)
    return {
      kind: 'exit',
      exit: toExit({ provider, run, details, state, outputReceiver, ...rest }, state.finished),
    }
  await outputReceiver.end()
  const now = provider.proxmox.clock.now()
  // A command that never started was not killed.
  const report = { code: 0, signal: state.startedAt === undefined ? 0 : 9, ended: '' as const }
  const files = state.startedAt === undefined ? NO_FILES : rest.collected()
  const finished: Finished = { jobId: run.job.id, report, endedAt: now, ...files }
  return { kind: 'exit', exit: toExit({ provider, run, details, state, outputReceiver, ...rest }, finished) }
}

const NO_FILES: CollectedFiles = { artifacts: [], skipped: [], patch: null }

const targetOf = (
  { owner, pool, vmids }: FollowVmJobOptions['provider'],
  { machine }: AttachRequest,
  { vmid }: Details,
): Target => ({ machineId: machine.id, vmid, owner, pool, vmids, tagged: true })

const reasonOf = (run: AttachRequest): StopReason => run.stop.reason as StopReason

const toExit = (
  { provider, run, state, outputReceiver, phases, details, domains, reaches }: FollowVmJobOptions,
  { report, endedAt, artifacts, skipped, patch }: Finished,
): Exit => {
  const startedAt = state.startedAt ?? detailsOf(run.machine).started?.at ?? endedAt
  const told = outputReceiver.agent()
  const stopped = run.stop.aborted ? reasonOf(run).kind : report.ended === 'timeout' ? 'timeout' : null
  return {
    // 128 + the signal, as a shell reports it.
    code: report.signal === 0 ? report.code : 128 + report.signal,
    signal: report.signal === 0 ? null : signalOf(128 + report.signal).signal,
    stopped,
    startedAt,
    endedAt,
    artifacts,
    skippedArtifacts: skipped,
    patch,
    usage: told.usage,
    isolation: [
      'virtual machine',
      networkIsolation(details, { channel: provider.channel, domains, reach: reaches.get(details.node) }),
      'ordinary user',
    ],
    limitsHit: [
      ...(stopped === 'timeout' ? [`timeout of ${run.job.timeoutSeconds} s`] : []),
      ...(outputReceiver.sawNoSpace ? ['disk of the machine'] : []),
    ],
    agentError: told.error,
    phases: { ...phases, run: Math.max(0, endedAt - startedAt) },
  }
}
