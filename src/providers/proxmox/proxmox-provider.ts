import { AppError, amendError, toAppError } from '../../jobs/errors.ts'
import type { AttachRequest, Machine, Provider, Run } from '../../ports.ts'
import { type CallbackServer, createCallbackServer } from './callback-server.ts'
import { checkProxmox } from './check-proxmox.ts'
import { createMachineDestroyer } from './destroy-machine.ts'
import { isTaken } from './destroy-vm.ts'
import { createGuestSessions } from './guest-sessions.ts'
import { listMachines } from './list-vms.ts'
import { isVmidFree, locateVm } from './locate-vm.ts'
import type { NodeReaches } from './node-reach.ts'
import { probeMachine } from './probe-machine.ts'
import { createProvisioner, type Provisioner } from './provision-vm.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import { concludeFromRecord, runVmJob, type VmJobOptions } from './run-vm-job.ts'
import { createSeedImages, type SeedImages } from './seed-images.ts'
import { fitsProxmox } from './unmet-vm-requirement.ts'
import { completeDetailsOf, type Details, detailsOf, movedTo } from './vm-details.ts'
import { firewallFor } from './vm-egress.ts'
import { vmSpecFor } from './vm-spec.ts'
import { canReuseMachine, warmTemplateFor } from './warm-machine.ts'

/** Jobs in VMs cloned from a template, with an API token and nothing else. */
export const createProxmoxProvider = (provider: ProxmoxProviderOptions): Provider => {
  const { proxmox } = provider
  const sessions = createGuestSessions(() => proxmox.clock.now())
  const callbackServer = createCallbackServer(provider, sessions)
  const seedImages = createSeedImages(provider)
  const provisioner = createProvisioner({ provider, sessions, seedImages, ...callbackServer })
  const dispose = createMachineDestroyer({
    provider,
    callbackServer,
    seedImages,
    onGone: provisioner.vmids.release,
  })
  const reaches: NodeReaches = new Map()
  const parts: Parts = { provider, sessions, callbackServer, provisioner, reaches }
  let provisioning = 0

  const provision: Provider['create'] = async request => {
    const wanted = vmSpecFor(request.manifest, provider, request.kind)
    if (await canReuseMachine(parts, request, wanted)) return
    // Open the listener before cloning: a machine that cannot report is useless.
    await callbackServer.ready()
    if (await provisioner.resume(request)) return
    // The warm machine does not match the request: destroy it and create a new one.
    if (detailsOf(request.machine).vmid !== undefined)
      await dispose(request.machine, request.signal).catch(rethrowRetryable)
    await provisioner.make(request, wanted)
  }

  const counted = async <T>(work: () => Promise<T>): Promise<T> => {
    provisioning++
    try {
      return await work()
    } finally {
      provisioning--
    }
  }

  /** Applies the network of the command. A follow-up job without a network setting keeps that of the machine. */
  const withNetwork = async (run: Run, details: Details): Promise<Details> => {
    if (run.manifest.machine !== undefined && run.manifest.network === undefined) return details
    const network = firewallFor(run.command.network, provider)
    if (network === details.network) return details
    await provisioner.protect(details, network, run.detach)
    await run.remember({ network })
    return { ...details, network }
  }

  return {
    name: 'proxmox',
    ownKernel: true,
    slots: provider.limit,
    pool: {
      size: provider.poolSize,
      kinds: provider.poolTemplates ?? [provider.template],
      kindFor: manifest => warmTemplateFor(manifest, provider),
      ...(provider.poolAgeSeconds !== undefined && { ageSeconds: provider.poolAgeSeconds }),
    },
    check: signal => checkProxmox(provider, callbackServer, signal),
    fits: manifest => fitsProxmox(manifest, provider),

    create: request => counted(() => provision(request)),
    probe: request => counted(() => probeMachine(parts, request)),

    start: async run => {
      try {
        await callbackServer.ready()
        const details = completeDetailsOf(run.machine)
        const here = run.manifest.machine === undefined ? details : await requireAlive(parts, run, details)
        return await runVmJob(parts, run, await withNetwork(run, here), run)
      } catch (error) {
        if (run.detach.aborted) return { kind: 'detached' }
        return { kind: 'not-started', error: toAppError(error) }
      }
    },

    attach: run => attachRun(parts, run),

    destroy: async (machine, signal) => {
      await dispose(machine, signal)
      if (provisioning === 0) await callbackServer.closeWhenIdle()
    },

    list: async (signal, known = []) => {
      const found = await listMachines(provider, signal)
      const seen = new Set(found.filter(({ leftover }) => !leftover).map(({ id }) => id))
      for (const machine of known)
        if (!seen.has(machine.id) && (await mayExist(provider, machine, signal))) found.push(machine)
      return found
    },
    recall: machines => recallMachines({ ...parts, seedImages }, machines),
    close: async () => {
      await seedImages.close()
      await callbackServer.close()
      await proxmox.close()
    },
  }
}

interface Parts extends VmJobOptions {
  readonly provisioner: Provisioner
}

const attachRun = async (parts: Parts, run: AttachRequest): ReturnType<Provider['attach']> => {
  const { callbackServer, provisioner } = parts
  const details = detailsOf(run.machine)
  if (details.finished?.jobId === run.job.id)
    return concludeFromRecord(parts, run, completeDetailsOf(run.machine))
  if (details.started?.jobId !== run.job.id) {
    // A machine gets its job only after it is ready, so the job has not started.
    const found = await provisioner.booting(run.machine, run.detach).catch(() => undefined)
    if (found) return { kind: 'unfinished' }
    const error = new AppError('unavailable', 'The daemon was restarted before the command had started.')
    return { kind: 'not-started', error }
  }
  await callbackServer.ready()
  return runVmJob(parts, run, completeDetailsOf(run.machine))
}

/** Restores the sessions, ids and images of the machines that an earlier daemon has recorded. */
const recallMachines = (
  { provider, sessions, callbackServer, provisioner, seedImages }: Parts & { seedImages: SeedImages },
  machines: Parameters<NonNullable<Provider['recall']>>[0],
): void => {
  for (const machine of machines) {
    const { vmid, doubtful = [], ready, tokenHash, node, seed, seedNode } = detailsOf(machine)
    provisioner.vmids.hold([...(vmid === undefined ? [] : [vmid]), ...doubtful])
    if (!ready || tokenHash === undefined || vmid === undefined || node === undefined) continue
    // A machine that is being destroyed deletes its own image.
    if (seed !== undefined && machine.state !== 'destroying')
      seedImages.retire(machine.id, { node, vmid, volid: seed, ...(seedNode && { seedNode }) })
    if (machine.state !== 'kept' && machine.state !== 'ready') continue
    sessions.add(machine.id, tokenHash)
    callbackServer.startAgentTransport(machine.id, { node, vmid })
  }
  if (sessions.size > 0)
    callbackServer
      .ready()
      .catch(error =>
        provider.log.warn(
          { reason: error.message },
          'the callback server cannot listen; idle machines cannot report',
        ),
      )
}

/** Proxmox VE omits VMs that the token may not see: a VM is gone when its id is free or belongs to another guest. */
const mayExist = async (
  { proxmox, owner, pool, vmids }: ProxmoxProviderOptions,
  machine: Machine,
  signal: AbortSignal,
): Promise<boolean> => {
  const { vmid } = detailsOf(machine)
  if (vmid === undefined || (await isVmidFree(proxmox, vmid, signal))) return false
  return !(await isTaken(proxmox, { machineId: machine.id, vmid, owner, pool, vmids }, signal))
}

/** The record of the old machine remains until it is destroyed; the job retries on another machine. */
const rethrowRetryable = (thrown: unknown): never => {
  throw amendError(toAppError(thrown), { retryable: true })
}

/** A follow-up job needs the named machine, because only that machine has its workspace. */
const requireAlive = async (
  { provider, callbackServer }: { provider: ProxmoxProviderOptions; callbackServer: CallbackServer },
  run: Run,
  details: Details,
): Promise<Details> => {
  const found = await locateVm(provider.proxmox, details, run.detach)
  if (found.kind === 'hidden')
    throw new AppError(
      'unavailable',
      `The token may not look at VM ${details.vmid}, machine ${run.machine.id}.`,
      {
        hint: 'Show the missing privilege: deputy doctor',
      },
    )
  if (found.kind === 'gone' || !found.running)
    throw new AppError(
      'not_found',
      `The kept machine ${run.machine.id} no longer exists, nor does its workspace.`,
      {
        hint: 'Machines end with their lease. Submit the job without machine.',
      },
    )
  if (found.node === details.node) return details
  callbackServer.moved(run.machine.id, found.node)
  const moved = movedTo(details, found.node)
  await run.remember(moved)
  return { ...details, ...moved }
}
