import { basename } from 'node:path'
import { type GuestListener, startGuestListener } from '../../guest/listener.ts'
import type { Seed } from '../../guest/seed.ts'
import { encodeSpec } from '../../guest/spec.ts'
import { AppError, toAppError } from '../../jobs/errors.ts'
import type { AttachRequest, Machine, Outcome, Run, Runtime } from '../../ports.ts'
import { path } from '../../proxmox/encode.ts'
import { proxmoxDetails } from '../../proxmox/errors.ts'
import { createLimiter } from '../../proxmox/limiter.ts'
import { type Address, callbackAddress } from './address.ts'
import { createAgentLink } from './agent.ts'
import { checkProxmox } from './check.ts'
import { destroyVm } from './destroy.ts'
import { type Details, detailsOf } from './details.ts'
import { fitsProxmox } from './fits.ts'
import { type FollowOptions, follow } from './follow.ts'
import { createIntake } from './intake.ts'
import { createJobPort, inputsOf } from './job-port.ts'
import { listMachines } from './list.ts'
import { serveMailbox } from './mailbox.ts'
import type { ProxmoxRuntimeOptions } from './options.ts'
import { createProvisioner, wantedBy } from './provision.ts'
import { createSessions } from './sessions.ts'

/** After a start it takes a while until every machine is known again; until then none is sent away. */
const MEMORY_MS = 180_000

/** Jobs in VMs cloned from a template, with an API token and nothing else. */
export const createProxmoxRuntime = (runtime: ProxmoxRuntimeOptions): Runtime => {
  const { proxmox, log } = runtime
  const now = () => proxmox.clock.now()
  const sessions = createSessions(now)
  const seeds = new Map<string, Seed>()
  const deleting = createLimiter(runtime.parallel.deletes)
  let listening: Promise<GuestListener> | undefined
  const mailboxes = new Map<string, AbortController>()
  const startedAt = now()
  let inner: Promise<GuestListener> | undefined
  let openedAt = 0
  let provisioning = 0

  const open = (host: string): Promise<GuestListener> =>
    startGuestListener({
      host,
      port: runtime.callback.port,
      ...(runtime.callback.tls ? { tls: runtime.callback.tls } : {}),
      machine: hash => sessions.machine(hash),
      seed: name => seeds.get(name),
      patient: () => now() - openedAt < MEMORY_MS,
      onError: error => log.debug({ reason: (error as Error).message }, 'a machine asked in vain'),
    }).catch(error => {
      // The address may be that of a router in front of us: machines use it, but it is not ours to listen on.
      if ((error as NodeJS.ErrnoException).code === 'EADDRNOTAVAIL' && host !== '0.0.0.0')
        return open('0.0.0.0')
      throw error
    })

  /** Opened with the first machine, not before: nobody else needs it. */
  const listener = (): Promise<GuestListener> => {
    if (listening === undefined) openedAt = now()
    listening ??= open(runtime.callback.host).catch(cause => {
      listening = undefined
      throw cannotListen(runtime.callback, cause)
    })
    return listening
  }

  /** Whatever machines of ours talk to. */
  const ready = async (): Promise<void> => {
    await (runtime.channel === 'agent' ? loopback() : listener())
  }

  const address = async (): Promise<Address> => {
    const { port } = await listener()
    return callbackAddress(runtime.callback, port, proxmox.settings.endpoints[0]!.host)
  }

  /** The same routes on loopback, for requests that come through the guest agent. */
  const loopback = (): Promise<GuestListener> => {
    inner ??= startGuestListener({
      host: '127.0.0.1',
      port: 0,
      machine: hash => sessions.machine(hash),
      patient: () => now() - startedAt < MEMORY_MS,
    })
    return inner
  }

  const attend = (machineId: string, at: { node: string; vmid: number }): void => {
    if (runtime.channel !== 'agent' || mailboxes.has(machineId)) return
    const ending = new AbortController()
    mailboxes.set(machineId, ending)
    void loopback().then(({ port }) =>
      serveMailbox({
        agent: createAgentLink(proxmox, at),
        clock: proxmox.clock,
        log,
        port,
        signal: ending.signal,
      }),
    )
  }

  const provisioner = createProvisioner({
    runtime,
    sessions,
    address,
    publish: (name, seed) => void seeds.set(name, seed),
    unpublish: name => void seeds.delete(name),
    attend,
  })

  /** Binds the job to its machine and stays with it. */
  const bind = async (run: AttachRequest, details: Details, extra: { run?: Run }): Promise<Outcome> => {
    const secrets = extra.run?.command.secrets ?? (await runtime.secretsOf?.(run.manifest)) ?? {}
    const intake = createIntake({
      sink: run.sink,
      outputBytes: run.job.outputBytes,
      secrets,
      format:
        extra.run?.command.format ?? (run.manifest.agentType === 'claude' ? 'claude-stream-json' : 'text'),
      now,
    })
    const began = now()
    const phases: Record<string, number> = { ...details.phases }
    const state: FollowOptions['state'] = {
      startedAt: extra.run ? undefined : details.started?.at,
      finished: undefined,
      refused: undefined,
    }
    const session = sessions.add(run.machine.id, details.tokenHash)
    attend(run.machine.id, details)
    if (session.busy && session.job?.id !== run.job.id) throw busy(run)
    session.busy = true
    const port = createJobPort({
      run,
      intake,
      blobs: runtime.blobs,
      caps: runtime.keep,
      keeps: run.manifest.lifecycle === 'persistent' || run.manifest.machine !== undefined,
      now,
      onStarted: at => {
        if (state.startedAt === undefined) phases.hand_over = at - began
        state.startedAt ??= at
        session.order = undefined
      },
      onRefused: reason => {
        state.refused = reason
        sessions.ring(run.machine.id)
      },
      onFinished: finished => {
        state.finished = finished
        sessions.ring(run.machine.id)
      },
    })
    sessions.bind(session, { id: run.job.id, port }, extra.run ? orderFor(extra.run, runtime) : undefined)
    try {
      if (state.startedAt !== undefined) await run.sink.started(state.startedAt)
      const present = () => sessions.get(run.machine.id) === session
      return await follow({ runtime, sessions, run, details, intake, state, phases, present })
    } finally {
      session.order = undefined
      session.busy = false
    }
  }

  const destroy = async (machine: Machine, signal: AbortSignal): Promise<void> => {
    const details = detailsOf(machine)
    sessions.drop(machine.id)
    mailboxes.get(machine.id)?.abort()
    mailboxes.delete(machine.id)
    if (details.seedName) seeds.delete(details.seedName)
    if (details.cloneTask && !details.ready) await settleClone(details.cloneTask, signal)
    for (const vmid of new Set([
      ...(details.vmid === undefined ? [] : [details.vmid]),
      ...(details.doubtful ?? []),
    ])) {
      const target = { machineId: machine.id, vmid, owner: runtime.owner, vmids: runtime.vmids }
      await deleting(details.node ?? 'any', () => destroyVm(proxmox, target, signal), signal)
    }
    if (details.seed && details.node) await deleteSeed(details.node, details.seed, signal)
    await closeWhenIdle()
  }

  /** What listens to untrusted machines need not listen when there are none. */
  const closeWhenIdle = async (): Promise<void> => {
    if (sessions.size > 0 || provisioning > 0 || listening === undefined) return
    const open = listening
    listening = undefined
    await (await open).close()
  }

  const requireAlive = async (run: Run, { node, vmid }: Details): Promise<void> => {
    const at = path`/nodes/${node}/qemu/${vmid}/status/current`
    const status = await proxmox.get<{ status?: string }>(at).catch(error => {
      const kind = proxmoxDetails(error)?.kind
      if (kind === 'missing' || kind === 'permission') return undefined
      throw error
    })
    if (status?.status === 'running') return
    throw new AppError(
      'not_found',
      `The kept machine ${run.machine.id} is gone, and its workspace with it.`,
      {
        hint: 'Machines end with their lease. Submit the job without machine.',
      },
    )
  }

  /** A clone that is still being made is stopped; Proxmox VE removes what there is of it. */
  const settleClone = async (task: string, signal: AbortSignal): Promise<void> => {
    await proxmox.cancelTask(task, { signal }).catch(() => {})
    await proxmox.waitTask(task, { signal, deadline: now() + 60_000 }).catch(() => {})
  }

  const deleteSeed = async (node: string, volid: string, signal: AbortSignal): Promise<void> => {
    const [storage = ''] = volid.split(':')
    try {
      const task = await proxmox.delete<string | null>(
        path`/nodes/${node}/storage/${storage}/content/${volid}`,
        {},
        { signal },
      )
      if (task) await proxmox.waitTask(task, { signal, deadline: now() + 60_000 })
    } catch (error) {
      const kind = proxmoxDetails(error)?.kind
      if (kind === 'missing') return
      if (kind !== 'permission') throw error
      log.warn(
        { volid },
        'the token may not delete seed images: grant Datastore.Allocate on a storage of their own',
      )
    }
  }

  return {
    name: 'proxmox',
    limit: runtime.limit,
    poolSize: runtime.poolSize,
    check: signal => checkProxmox(runtime, signal),
    fits: manifest => fitsProxmox(manifest),

    provision: async request => {
      const wanted = wantedBy(request.manifest, runtime)
      const details = detailsOf(request.machine)
      if (details.ready && details.tokenHash !== undefined) {
        if (await isUsable(request.machine, request.manifest?.machine !== undefined)) return
        await destroy(request.machine, request.signal)
      }
      provisioning++
      try {
        await provisioner.make(request, wanted)
      } finally {
        provisioning--
      }

      /** A machine of the pool serves when it is alive and large enough; a kept one in any case. */
      async function isUsable(machine: Machine, kept: boolean): Promise<boolean> {
        await ready()
        const session = sessions.add(machine.id, details.tokenHash!)
        attend(machine.id, { node: details.node!, vmid: details.vmid! })
        if (kept) return true
        const same =
          details.network === wanted.network &&
          (request.manifest?.vmTemplate === undefined ||
            String(details.template) === request.manifest.vmTemplate)
        const enough =
          (details.cores ?? 0) >= wanted.cores &&
          (details.memory ?? 0) >= wanted.memory &&
          request.manifest?.resources?.disk === undefined
        if (!enough || (!same && details.network === 'full')) return false
        if (session.lastContact === undefined) await sessions.change(machine.id, 3000, request.signal)
        if (now() - (session.lastContact ?? 0) > 60_000) return false
        if (!same) {
          await provisioner.protect(
            { node: details.node!, vmid: details.vmid! },
            wanted.network,
            request.signal,
          )
          await request.remember({ ...details, network: wanted.network })
        }
        return true
      }
    },

    start: async run => {
      try {
        await ready()
        const details = run.machine.details as object as Details
        if (run.manifest.machine !== undefined) await requireAlive(run, details)
        return await bind(run, details, { run })
      } catch (error) {
        if (run.detach.aborted) return { kind: 'detached' }
        return { kind: 'not-started', error: toAppError(error) }
      }
    },

    attach: async run => {
      const details = detailsOf(run.machine)
      if (details.finished?.jobId === run.job.id) return fromRecord(run, details as Details)
      if (
        details.started?.jobId !== run.job.id ||
        details.tokenHash === undefined ||
        details.vmid === undefined
      ) {
        return {
          kind: 'not-started',
          error: new AppError('unavailable', 'The daemon was restarted before the command had started.'),
        }
      }
      await ready()
      return bind(run, details as Details, {})
    },

    destroy,
    list: signal => listMachines(sessions, runtime, signal),
    close: async () => {
      for (const ending of mailboxes.values()) ending.abort()
      await (await listening)?.close()
      await (await inner)?.close()
      await proxmox.close()
    },
  }

  /** The result had arrived, but nobody had taken it. */
  async function fromRecord(run: AttachRequest, details: Details): Promise<Outcome> {
    const state = { startedAt: details.started?.at, finished: details.finished, refused: undefined }
    if (state.startedAt !== undefined) await run.sink.started(state.startedAt)
    const intake = createIntake({
      sink: run.sink,
      outputBytes: run.job.outputBytes,
      secrets: {},
      format: 'text',
      now,
    })
    return follow({
      runtime,
      sessions,
      run,
      details,
      intake,
      state,
      phases: details.phases ?? {},
      present: () => true,
    })
  }
}

const busy = (run: AttachRequest): AppError =>
  new AppError('conflict', `The machine ${run.machine.id} is busy with another job.`, {
    hint: 'Wait until that one is over: a machine runs one command at a time.',
  })

const cannotListen = ({ host, port }: ProxmoxRuntimeOptions['callback'], cause: unknown): AppError =>
  new AppError(
    'unavailable',
    `The guest listener cannot listen on ${host}:${port}: ${(cause as Error).message}`,
    {
      hint: 'Set CALLBACK_PORT to a free port, or stop the program that has it.',
      cause,
    },
  )

const orderFor = ({ job, manifest, command }: Run, runtime: ProxmoxRuntimeOptions): string =>
  encodeSpec({
    jobId: job.id,
    // A program that was found on this computer is called by its name in another.
    argv: command.programs.length > 0 ? [basename(command.argv[0]!), ...command.argv.slice(1)] : command.argv,
    env: command.env,
    secrets: command.secrets,
    timeoutSeconds: command.timeoutSeconds,
    graceSeconds: runtime.graceSeconds,
    heartbeatSeconds: runtime.heartbeatSeconds,
    inputs: inputsOf(manifest, runtime.blobs).map(input => input.into),
    wantsArtifacts: (manifest.artifacts ?? []).length > 0,
    continues: manifest.machine !== undefined,
    keeps: manifest.lifecycle === 'persistent' || manifest.machine !== undefined,
  })
