import { AppError } from '../../jobs/errors.ts'
import type { AttachRequest, Exit, Outcome, StopReason } from '../../ports.ts'
import { proxmoxDetails } from '../../proxmox/proxmox-errors.ts'
import { signalOf } from '../../runner/signals.ts'
import { stopVm, type Target } from './destroy-vm.ts'
import { locateVm } from './locate-vm.ts'
import { type CollectedFiles, type Details, detailsOf, type Finished } from './machine-details.ts'
import type { NodeReaches } from './node-reach.ts'
import { outlivesJob } from './outlives-job.ts'
import type { OutputReceiver } from './output-receiver.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import type { Sessions } from './sessions.ts'
import { networkIsolation } from './vm-isolation.ts'

export interface FollowVmJobOptions {
  readonly provider: Pick<
    ProxmoxProviderOptions,
    'proxmox' | 'log' | 'channel' | 'graceSeconds' | 'heartbeatSeconds' | 'owner' | 'pool' | 'vmids'
  >
  readonly sessions: Sessions
  readonly reaches: NodeReaches
  readonly run: AttachRequest
  readonly details: Details
  readonly outputReceiver: OutputReceiver
  /** Set by the job's port. */
  readonly state: {
    startedAt: number | undefined
    finished: Finished | undefined
    refused: string | undefined
    /** When the stop request was sent to the machine. */
    toldAt: number | undefined
    /** When something of its files came last. */
    filesAt: number | undefined
  }
  /** What the job may reach through our proxy. */
  readonly domains?: readonly string[]
  /** The files that have arrived, however far they came. */
  collected(): CollectedFiles
  /** Called when the machine is found on another node. */
  moved(node: string): Promise<void>
  /** Whether the machine is still one of ours. */
  present(): boolean
  readonly phases: Readonly<Record<string, number>>
}

/** How often a machine that is silent is looked at from outside. */
const LOOK_MS = 10_000
/** How long a machine that has the order may be silent before the command has started. */
const HAND_OVER_MS = 600_000
/** How long to wait for the final report after a stop request. */
const LAST_WORDS_MS = 15_000
/**
 * A machine that does not hear of a cancel within two heartbeats and this time is cut off. One heartbeat may be lost
 * while the daemon restarts, and a busy machine sends the next one late.
 */
const LATE_MS = 3000
/** And for files that are on their way when the time is over; the engine waits no longer than that. */
const FILES_MS = 40_000
const MOST_MS = LAST_WORDS_MS + FILES_MS

/** Follows a job until the machine reports its end, or Proxmox VE reports the end of the machine. */
export const followVmJob = async (options: FollowVmJobOptions): Promise<Outcome> => {
  const { provider, sessions, run, state } = options
  const { clock } = provider.proxmox
  const machineId = run.machine.id
  const wake = () => sessions.ring(machineId)
  const beganAt = clock.now()
  // The deadline counts from the request, even if the machine is being looked at when it arrives.
  let askedAt = run.stop.aborted ? beganAt : undefined
  const onStop = () => {
    askedAt = clock.now()
    wake()
  }
  run.stop.addEventListener('abort', onStop)
  run.detach.addEventListener('abort', wake)
  // Found again after a restart: it may be long gone.
  let lookAt = clock.now() + (state.startedAt === undefined ? LOOK_MS : 0)
  let missed = false
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
      if (!missed && !options.present()) {
        missed = true
        lookAt = 0
      }
      // Before the start there is nothing to wait for; a stale machine has said its last.
      if (
        askedAt !== undefined &&
        (state.startedAt === undefined ||
          reasonOf(run).kind === 'stale' ||
          clock.now() >= deadline(options, askedAt))
      )
        return await cutOff(options)
      if (state.startedAt === undefined && silence(options, beganAt) > HAND_OVER_MS)
        return ended(undefined, `VM ${options.details.vmid} has the job, but is not heard of any more`)
      if (clock.now() >= lookAt) {
        lookAt = clock.now() + LOOK_MS
        const gone = await lookAtMachine(options, node, async next => {
          node = next
          await options.moved(next)
        })
        if (gone && !state.finished) return gone
        // A change during the check wakes nobody; check again.
        continue
      }
      const cut = askedAt === undefined ? lookAt : deadline(options, askedAt)
      const next = Math.min(lookAt, cut) - clock.now()
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
 * When the plug is pulled. Whoever cancels does not want to wait for files, nor for a machine that does not hear of it;
 * whose time is over waits for its files.
 */
const deadline = (
  { provider, run, state: { toldAt, filesAt } }: FollowVmJobOptions,
  askedAt: number,
): number => {
  const graceMs = provider.graceSeconds * 1000
  const stopAt = askedAt + graceMs + LAST_WORDS_MS
  if (reasonOf(run).kind !== 'timeout')
    return toldAt === undefined
      ? Math.min(stopAt, askedAt + Math.max(graceMs, 2 * provider.heartbeatSeconds * 1000 + LATE_MS))
      : Math.min(toldAt + graceMs + LAST_WORDS_MS, askedAt + graceMs + MOST_MS)
  return filesAt === undefined
    ? stopAt
    : Math.min(stopAt + FILES_MS, Math.max(stopAt, filesAt + LAST_WORDS_MS))
}

/** A machine that is off or gone will not speak any more. Trouble with the cluster says nothing about it. */
const lookAtMachine = async (
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

/** Pulls the plug. What was printed until then is kept. */
const cutOff = async ({
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
  // What never started was not killed either.
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
    // As a shell reports it.
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
