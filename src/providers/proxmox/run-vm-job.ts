import type { Work } from '../../guest/machine-handler.ts'
import { encodeSpec } from '../../guest/order-format.ts'
import { AppError } from '../../jobs/errors.ts'
import { KEPT } from '../../jobs/limits.ts'
import type { AttachRequest, Outcome, Run } from '../../ports.ts'
import { createCollection, leavesFiles } from '../../runner/collect.ts'
import { argvElsewhere } from '../../runner/start-request.ts'
import type { CallbackServer } from './callback-server.ts'
import { type FollowVmJobOptions, followVmJob } from './follow-vm-job.ts'
import type { GuestSessions } from './guest-sessions.ts'
import { createJobHandler, inputsOf } from './job-handler.ts'
import type { NodeReaches } from './node-reach.ts'
import { outlivesJob } from './outlives-job.ts'
import { createOutputReceiver, type OutputReceiverOptions } from './output-receiver.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import { createSealedOutputState } from './sealed-output-state.ts'
import { type Details, movedTo, toRecord } from './vm-details.ts'
import { openEgress } from './vm-egress.ts'
import { createVmFileChannel } from './vm-file-channel.ts'

export interface VmJobOptions {
  readonly provider: ProxmoxProviderOptions
  readonly sessions: GuestSessions
  readonly callbackServer: CallbackServer
  /** Results of probes, by node. */
  readonly reaches: NodeReaches
}

/** The size of a batch of files; smaller through the guest agent, which is slow. */
const BATCH_BYTES = 32 * 1024 * 1024
const AGENT_BATCH_BYTES = 1024 * 1024

/** Runs a job on its machine until its end. `fresh` is set for a new run and absent after a restart. */
export const runVmJob = async (
  { provider, sessions, callbackServer, reaches }: VmJobOptions,
  run: AttachRequest,
  details: Details,
  fresh?: Run,
): Promise<Outcome> => {
  const now = () => provider.proxmox.clock.now()
  const heartbeatSeconds = (fresh ? undefined : details.heartbeatSeconds) ?? provider.heartbeatSeconds
  const session = sessions.add(run.machine.id, details.tokenHash)
  callbackServer.startAgentTransport(run.machine.id, details)
  if (session.busy && session.job?.id !== run.job.id) throw busy(run)
  session.busy = true
  let endEgress = () => {}
  try {
    const egress = await openEgress({
      ...{ provider, sessions, session, run, details, fresh },
      address: callbackServer.address,
    })
    endEgress = egress.end
    const outputState = createSealedOutputState({
      ...{ run, details, token: () => session.token },
      fresh: fresh && withSecrets(fresh, egress.secrets),
    })
    const outputReceiver = receiverFor(run, now, { read: outputState.open, keep: outputState.keep })
    const phases: Record<string, number> = { ...details.phases }
    // In a kept machine the value belongs to an earlier job.
    if (fresh) delete phases.first_callback
    const began = now()
    const state = newState({ startedAt: fresh ? undefined : details.started?.at })
    const collection = collectionFor(run, provider, () => state.startedAt ?? began)
    const stored = details.collected?.jobId === run.job.id ? details.collected : undefined
    const collected = () => stored ?? toRecord(collection.result(), outputReceiver.redact)
    const files = createVmFileChannel({
      collection,
      complete: stored !== undefined,
      store: () => run.remember({ collected: { jobId: run.job.id, ...collected() } }),
      onBytes: () => {
        state.lastFileAt = now()
        run.sink.heartbeat()
      },
    })
    const port = createJobHandler({
      run,
      outputReceiver,
      blobs: provider.blobs,
      files,
      collected,
      onInput: () => {
        session.lastContact = now()
      },
      outlivesJob: outlivesJob(run),
      now,
      withStart: () => {
        if (fresh) phases.first_callback ??= now() - began
        return { ...outputState.sealed(), ...egress.note, phases, heartbeatSeconds }
      },
      onStopSent: () => {
        state.stopSentAt ??= now()
      },
      onStarted: at => {
        state.startedAt ??= at
        session.work = undefined
      },
      onRefused: reason => {
        // Ignore a refusal after the start: the job would run a second time.
        if (state.startedAt !== undefined) return
        state.refused = reason
        sessions.notify(run.machine.id)
      },
      onFinished: finished => {
        state.finished = finished
        sessions.notify(run.machine.id)
      },
    })
    sessions.bind(session, { id: run.job.id, port }, fresh ? workFor(fresh, provider, egress.env) : undefined)
    if (state.startedAt !== undefined) {
      await run.sink.started(state.startedAt)
      // Start the heartbeat timeout, even if the machine never contacts this daemon.
      run.sink.heartbeat()
    }
    const present = () => sessions.get(run.machine.id) === session
    const moved = async (node: string): Promise<void> => {
      callbackServer.moved(run.machine.id, node)
      await run.remember(movedTo(details, node))
    }
    return await followVmJob({
      ...{ sessions, run, details, outputReceiver, state, phases, present, moved },
      provider: { ...provider, heartbeatSeconds },
      ...(egress.domains && { domains: egress.domains }),
      collected,
      reaches,
    })
  } finally {
    endEgress()
    session.work = undefined
    session.busy = false
  }
}

/** Concludes a job whose result was stored before a restart but not yet processed. */
export const concludeFromRecord = async (
  { provider, sessions, reaches }: VmJobOptions,
  run: AttachRequest,
  details: Details,
): Promise<Outcome> => {
  const state = newState({ startedAt: details.started?.at, finished: details.finished })
  if (state.startedAt !== undefined) await run.sink.started(state.startedAt)
  const now = () => provider.proxmox.clock.now()
  const outputReceiver = receiverFor(run, now, { read: () => undefined, keep: () => undefined })
  return followVmJob({
    provider,
    sessions,
    run,
    details,
    outputReceiver,
    state,
    phases: details.phases ?? {},
    present: () => true,
    moved: async () => {},
    reaches,
    collected: () => state.finished ?? { artifacts: [], skipped: [], patch: null },
  })
}

const receiverFor = (
  { sink, job: { outputBytes } }: AttachRequest,
  now: () => number,
  state: Pick<OutputReceiverOptions, 'read' | 'keep'>,
) => createOutputReceiver({ sink, outputBytes, now, ...state })

const newState = (known: Partial<FollowVmJobOptions['state']>): FollowVmJobOptions['state'] => ({
  startedAt: undefined,
  finished: undefined,
  refused: undefined,
  stopSentAt: undefined,
  lastFileAt: undefined,
  ...known,
})

const collectionFor = (
  { job, manifest }: AttachRequest,
  { blobs, keep, channel }: ProxmoxProviderOptions,
  startedAt: () => number,
) =>
  createCollection({
    jobId: job.id,
    manifest,
    blobs,
    keep: { patchBytes: KEPT.patchBytes, ...keep },
    batchBytes: channel === 'agent' ? AGENT_BATCH_BYTES : BATCH_BYTES,
    startedAt,
  })

/** Adds secrets that must be redacted from the output but are not variables of the command. */
const withSecrets = (run: Run, secrets: Readonly<Record<string, string>>): Run => ({
  ...run,
  command: { ...run.command, secrets: { ...run.command.secrets, ...secrets } },
})

const workFor = (
  { job, manifest, command }: Run,
  provider: ProxmoxProviderOptions,
  env: Readonly<Record<string, string>>,
): Work => {
  const inputs = inputsOf(manifest, provider.blobs).map(input => input.into)
  const order = encodeSpec({
    jobId: job.id,
    argv: argvElsewhere(command),
    env: { ...env, ...command.env },
    secrets: command.secrets,
    timeoutSeconds: command.timeoutSeconds,
    graceSeconds: provider.graceSeconds,
    heartbeatSeconds: provider.heartbeatSeconds,
    inputs,
    wantsFiles: leavesFiles(manifest),
    continues: manifest.machine !== undefined,
    outlivesJob: outlivesJob({ manifest }),
  })
  return { jobId: job.id, order, isAll: inputs.length === 0 }
}

const busy = (run: AttachRequest): AppError =>
  new AppError('conflict', `The machine ${run.machine.id} is busy with another job.`, {
    hint: 'A machine runs one command at a time. Wait for that job: deputy list',
  })
