import { AppError, toAppError } from '../../jobs/errors.ts'
import type { Run, Runtime } from '../../ports.ts'
import { path } from '../../proxmox/encode.ts'
import { proxmoxDetails } from '../../proxmox/errors.ts'
import { bindJob, concludeFromRecord } from './binding.ts'
import { checkProxmox } from './check.ts'
import { type Details, detailsOf } from './details.ts'
import { createDisposal } from './disposal.ts'
import { firewallFor } from './egress.ts'
import { fitsProxmox } from './fits.ts'
import { listMachines } from './list.ts'
import type { ProxmoxRuntimeOptions } from './options.ts'
import { probeCallback } from './probe.ts'
import { createProvisioner, wantedBy } from './provision.ts'
import { createReception } from './reception.ts'
import { createSessions } from './sessions.ts'
import { canTake } from './warm.ts'

/** Jobs in VMs cloned from a template, with an API token and nothing else. */
export const createProxmoxRuntime = (runtime: ProxmoxRuntimeOptions): Runtime => {
  const { proxmox } = runtime
  const sessions = createSessions(() => proxmox.clock.now())
  const reception = createReception(runtime, sessions)
  const provisioner = createProvisioner({ runtime, sessions, ...reception })
  const dispose = createDisposal(runtime, reception)
  const parts = { runtime, sessions, reception, provisioner }
  let provisioning = 0

  const provision: Runtime['provision'] = async request => {
    const wanted = wantedBy(request.manifest, runtime)
    if (await canTake(parts, request, wanted)) return
    // A warm machine that does not suit gives way to a cold one.
    if (detailsOf(request.machine).vmid !== undefined) await dispose(request.machine, request.signal)
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

  /** What the command may reach is known only now. A follow-up that says nothing of it leaves it as it is. */
  const withNetwork = async (run: Run, details: Details): Promise<Details> => {
    if (run.manifest.machine !== undefined && run.manifest.network === undefined) return details
    const network = firewallFor(run, runtime)
    if (network === details.network) return details
    await provisioner.protect(details, network, run.detach)
    await run.remember({ network })
    return { ...details, network }
  }

  return {
    name: 'proxmox',
    limit: runtime.limit,
    poolSize: runtime.poolSize,
    ...(runtime.poolAgeSeconds !== undefined && { poolAgeSeconds: runtime.poolAgeSeconds }),
    check: signal => checkProxmox(runtime, reception, signal),
    fits: manifest => fitsProxmox(manifest, runtime),

    provision: request => counted(() => provision(request)),
    probe: request => counted(() => probeCallback(parts, request)),

    start: async run => {
      try {
        await reception.ready()
        const details = run.machine.details as object as Details
        if (run.manifest.machine !== undefined) await requireAlive(runtime, run, details)
        return await bindJob(parts, run, await withNetwork(run, details), run)
      } catch (error) {
        if (run.detach.aborted) return { kind: 'detached' }
        return { kind: 'not-started', error: toAppError(error) }
      }
    },

    attach: async run => {
      const details = detailsOf(run.machine)
      if (details.finished?.jobId === run.job.id) return concludeFromRecord(parts, run, details as Details)
      if (details.started?.jobId !== run.job.id) {
        const error = new AppError('unavailable', 'The daemon was restarted before the command had started.')
        return { kind: 'not-started', error }
      }
      await reception.ready()
      return bindJob(parts, run, details as Details)
    },

    destroy: async (machine, signal) => {
      await dispose(machine, signal)
      if (provisioning === 0) await reception.closeWhenIdle()
    },

    list: signal => listMachines(sessions, runtime, signal),
    close: async () => {
      await reception.close()
      await proxmox.close()
    },
  }
}

/** A follow-up needs the very machine it names: its workspace is nowhere else. */
const requireAlive = async (
  { proxmox }: ProxmoxRuntimeOptions,
  run: Run,
  { node, vmid }: Details,
): Promise<void> => {
  const at = path`/nodes/${node}/qemu/${vmid}/status/current`
  const found = await proxmox.get<{ status?: string }>(at).catch(error => {
    const kind = proxmoxDetails(error)?.kind
    if (kind === 'missing' || kind === 'permission') return undefined
    throw error
  })
  if (found?.status === 'running') return
  throw new AppError('not_found', `The kept machine ${run.machine.id} is gone, and its workspace with it.`, {
    hint: 'Machines end with their lease. Submit the job without machine.',
  })
}
