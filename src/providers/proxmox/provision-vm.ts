import { randomBytes } from 'node:crypto'
import type { Seed } from '../../guest/seed.ts'
import { hashToken } from '../../guest/token-hash.ts'
import { AppError, amendError } from '../../jobs/errors.ts'
import type { CreateRequest, Machine } from '../../ports.ts'
import { createKeyedSemaphore } from '../../proxmox/keyed-semaphore.ts'
import { proxmoxDetails } from '../../proxmox/proxmox-errors.ts'
import type { Address } from './callback-address.ts'
import { withoutImage } from './choose-injection.ts'
import type { Template } from './cluster-guests.ts'
import { configureClone } from './configure-vm.ts'
import { createProtection } from './firewall.ts'
import { waitForFirstContact } from './first-contact.ts'
import type { GuestSessions } from './guest-sessions.ts'
import { createInjector, type MachineSeed } from './inject-runner.ts'
import { createRecord, type MachineRecord } from './machine-record.ts'
import { createPhaseTimer, type Phase } from './phase-timer.ts'
import { createClonePlacement } from './place-clone.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import { findBooting, resumeBoot } from './resume-boot.ts'
import { retryThroughOutage } from './retry-through-outage.ts'
import type { SeedImage, SeedImages } from './seed-images.ts'
import { startVm } from './start-vm.ts'
import type { VmRef } from './vm-ref.ts'
import type { VmSpec } from './vm-spec.ts'

export interface ProvisionerOptions {
  readonly provider: ProxmoxProviderOptions
  readonly sessions: GuestSessions
  readonly seedImages: SeedImages
  address(): Promise<Address>
  /** Serves a seed over HTTP until the machine has called. */
  publish(name: string, seed: Seed): void
  unpublish(name: string): void
  /** Starts the transport of a machine that reports through its guest agent. */
  startAgentTransport(machineId: string, at: VmRef): void
}

/** Creates machines: clone, configure, firewall, seed, start, first callback. */
export const createProvisioner = (options: ProvisionerOptions) => {
  const { provider, sessions, seedImages, address, unpublish, startAgentTransport } = options
  const { proxmox, owner } = provider
  const starting = createKeyedSemaphore(provider.parallel.starts)
  const placement = createClonePlacement(provider)
  const { vmids } = placement

  const locked = <T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> =>
    retryThroughOutage(proxmox, work, { signal })

  const injector = createInjector({ ...options, locked })
  const protect = createProtection(provider, address)

  /** Sets up the stopped clone. Returns how it gets its runner, which may differ from the plan, and the image of it. */
  const configure = async (
    at: VmRef,
    { wanted, template, seed }: { wanted: VmSpec; template: Template; seed: MachineSeed },
    record: MachineRecord,
    signal: AbortSignal,
  ): Promise<{ seed: MachineSeed; image: SeedImage | undefined }> => {
    const { network } = provider
    const present = await configureClone(proxmox, { at, owner, network, wanted, locked, signal })
    // Only for the result, so it is stored with the next write.
    record.set({ filter: await protect(at, wanted.network, signal) })
    const inject = async (seed: MachineSeed) => ({
      seed,
      image: await injector.before({ ...at, present }, seed, record.store, signal),
    })
    return inject(seed).catch(error => {
      const injection = withoutSeedStorage(provider, template, error)
      if (injection === undefined) throw error
      record.set({ injection })
      return inject({ ...seed, injection })
    })
  }

  const make = async (
    request: CreateRequest,
    wanted: VmSpec,
    onPhase?: (phase: Phase) => void,
  ): Promise<void> => {
    const { machine, timed, signal } = request
    const timer = createPhaseTimer(onPhase)
    const { phases, lap } = timer
    const place = await placement.choose(request, wanted)
    const { template, injection, node } = place
    const token = randomBytes(32).toString('base64url')
    const tokenHash = hashToken(token)
    const record = createRecord(request.remember, {
      node,
      template: template.vmid,
      templateName: wanted.template,
      cores: wanted.cores,
      memory: wanted.memory,
      tokenHash,
      network: wanted.network,
      injection,
      ready: false,
    })
    const taken: number[] = []
    try {
      const vmid = await lap('clone', () => placement.clone(request, place, record, taken))
      const at = { node, vmid }
      sessions.add(machine.id, tokenHash)
      const seedName = randomBytes(18).toString('base64url')
      const plan = { wanted, template, seed: { machineId: machine.id, token, injection, seedName } }
      const { seed, image } = await lap('configure', () => configure(at, plan, record, signal))
      await lap('start', () => starting(node, () => startVm(proxmox, at, signal), signal))
      startAgentTransport(machine.id, at)
      await lap('boot', async () => {
        await injector.after(at, seed, signal)
        await waitForFirstContact(options, { machineId: machine.id, ...at }, signal)
      })
      unpublish(seedName)
      await record.store({ vmid, ready: true, phases })
      if (image) seedImages.retire(machine.id, image)
    } catch (error) {
      timed?.(phases)
      throw worthAnotherTry(isTimeout(signal.reason) ? tooLate(error, timer.current) : error)
    } finally {
      placement.release(node, wanted)
      // The other ids stay reserved until their machine is gone.
      for (const vmid of taken) vmids.release(vmid)
    }
  }

  return {
    make,
    booting: (machine: Machine, signal: AbortSignal) => findBooting(provider, machine, signal),
    resume: (request: CreateRequest) => resumeBoot(options, request),
    protect,
    vmids,
  }
}

export type Provisioner = ReturnType<typeof createProvisioner>

const RETRYABLE = ['task_failed', 'server', 'uncertain', 'exists', 'stale_lock']

/** The job has not started, so failed tasks and lost responses are retried on a new machine. */
const worthAnotherTry = (thrown: unknown): unknown =>
  thrown instanceof AppError && RETRYABLE.includes(proxmoxDetails(thrown)?.kind ?? '')
    ? amendError(thrown, { retryable: true })
    : thrown

export const isTimeout = (value: unknown): boolean =>
  value instanceof DOMException && value.name === 'TimeoutError'

const tooLate = (error: unknown, phase: Phase): unknown =>
  error instanceof AppError
    ? error
    : new AppError('timeout', `The machine was not ready in time: it got as far as "${phase}".`, {
        hint: 'Does the cluster answer, and is it fast enough? deputy doctor --probe; supervision.provisioning is the limit.',
        cause: error,
      })

/** With `auto`, fall back to another injection method if the storage is full. */
const withoutSeedStorage = (
  provider: ProxmoxProviderOptions,
  template: Template,
  error: unknown,
): 'http' | 'agent' | undefined => {
  if (provider.injection !== 'auto' || proxmoxDetails(error)?.kind !== 'no_space') return undefined
  const other = withoutImage(provider, template)
  if (other)
    provider.log.warn({ storage: provider.seedStorage, injection: other }, 'the seed storage is full')
  return other
}
