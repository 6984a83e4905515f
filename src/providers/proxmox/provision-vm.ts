import { randomBytes } from 'node:crypto'
import type { Seed } from '../../guest/seed.ts'
import { hashToken } from '../../guest/token-hash.ts'
import { AppError } from '../../jobs/errors.ts'
import type { Manifest } from '../../jobs/manifest.ts'
import { parseSize } from '../../jobs/sizes.ts'
import type { CreateRequest, Machine } from '../../ports.ts'
import { path } from '../../proxmox/encode.ts'
import { createKeyedSemaphore } from '../../proxmox/keyed-semaphore.ts'
import { proxmoxDetails } from '../../proxmox/proxmox-errors.ts'
import type { Address } from './callback-address.ts'
import { createInjectionChoice, withoutImage } from './choose-injection.ts'
import { createNodeChoice } from './choose-node.ts'
import { cloneTemplate } from './clone-vm.ts'
import { createGuestList, findTemplate, type Template } from './cluster-guests.ts'
import { configureClone } from './configure-vm.ts'
import { applyFirewall, createEnforcement, type Filter, planFirewall } from './firewall.ts'
import { describe, nameOf } from './identity.ts'
import { createInjector, type MachineSeed } from './inject-runner.ts'
import { locateVm } from './locate-vm.ts'
import { detailsOf, type Known } from './machine-details.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import { isOutage, retryThroughOutage } from './retry-through-outage.ts'
import type { SeedImage, SeedImages } from './seed-images.ts'
import type { Sessions } from './sessions.ts'
import { createVmids } from './vmids.ts'

export interface ProvisionerOptions {
  readonly provider: ProxmoxProviderOptions
  readonly sessions: Sessions
  readonly seedImages: SeedImages
  address(): Promise<Address>
  /** Serves a seed over HTTP until the machine has called. */
  publish(name: string, seed: Seed): void
  unpublish(name: string): void
  /** Starts the transport of a machine that reports through its guest agent. */
  startAgentTransport(machineId: string, at: { node: string; vmid: number }): void
}

export interface Wanted {
  readonly template: string
  readonly cores: number
  /** MiB */
  readonly memory: number
  readonly disk: number | undefined
  readonly network: 'none' | 'full'
}

export type Phase = 'template' | 'clone' | 'configure' | 'start' | 'boot'

const TASK_MS = 600_000

/** Creates machines: clone, configure, firewall, seed, start, first callback. */
export const createProvisioner = (options: ProvisionerOptions) => {
  const { provider, sessions, seedImages, address, unpublish, startAgentTransport } = options
  const { proxmox, owner } = provider
  const vmids = createVmids(provider.vmids)
  const cloning = createKeyedSemaphore(provider.parallel.clones)
  const starting = createKeyedSemaphore(provider.parallel.starts)
  const guestList = createGuestList(proxmox)
  const nodes = createNodeChoice(provider, guestList)
  const chooseInjection = createInjectionChoice(provider)

  const locked = <T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> =>
    retryThroughOutage(proxmox, work, { signal })

  const injector = createInjector({ ...options, locked })
  const enforced = createEnforcement(provider)

  const make = async (
    { machine, remember, timed, waiting, signal }: CreateRequest,
    wanted: Wanted,
    onPhase?: (phase: Phase) => void,
  ): Promise<void> => {
    const phases: Record<string, number> = {}
    let phase = 'template' as Phase
    const lap = async <T>(name: Phase, work: () => Promise<T>): Promise<T> => {
      const began = performance.now()
      phase = name
      onPhase?.(name)
      try {
        return await work()
      } finally {
        phases[name] = Math.round(performance.now() - began)
      }
    }
    // Report the reason of a wait only before the VM exists: only then can it be long.
    const retrying = <T>(work: () => Promise<T>): Promise<T> =>
      retryThroughOutage(proxmox, work, { signal, waiting })
    const template = await retrying(async () =>
      findTemplate(proxmox, wanted.template, await guestList.read(signal), signal),
    )
    const injection = await retrying(() => chooseInjection(template, signal))
    const needs = { memory: wanted.memory, injection }
    const { node, linked } = await retrying(() => nodes.choose(template, needs, signal))
    const token = randomBytes(32).toString('base64url')
    let details: Known = {
      node,
      template: template.vmid,
      templateName: wanted.template,
      cores: wanted.cores,
      memory: wanted.memory,
      tokenHash: hashToken(token),
      network: wanted.network,
      injection,
      ready: false,
    }
    const note = async (more: Known): Promise<void> => {
      details = { ...details, ...more }
      await remember({ ...details })
    }
    const taken: number[] = []
    const doubtful: number[] = []
    try {
      const identity = {
        machineId: machine.id,
        owner,
        createdAt: proxmox.clock.now(),
        tokenHash: details.tokenHash!,
      }
      const nextId = async (): Promise<number> => {
        const guests = await retrying(() => guestList.recent(signal))
        const known = new Set(guests.map(guest => guest.vmid))
        const vmid = vmids.take(known)
        await note({ vmid, doubtful: [...doubtful], cloneTask: undefined })
        return vmid
      }
      const vmid = await lap('clone', () =>
        // The task runs on the node of the template.
        cloning(
          template.node,
          () =>
            cloneTemplate(proxmox, {
              template,
              machineId: machine.id,
              name: nameOf(machine.id),
              description: describe(identity),
              pool: provider.pool,
              node,
              linked,
              nextId,
              taken: id => {
                taken.push(id)
                return note({ vmid: undefined, cloneTask: undefined })
              },
              doubt: id => void doubtful.push(id),
              began: task => note({ cloneTask: task }),
              deadline: proxmox.clock.now() + TASK_MS,
              waiting,
              signal,
            }),
          signal,
        ),
      )
      const at = { node, vmid }
      sessions.add(machine.id, details.tokenHash!)
      let machineSeed: MachineSeed = {
        machineId: machine.id,
        token,
        injection,
        seedName: randomBytes(18).toString('base64url'),
      }
      let image: SeedImage | undefined
      await lap('configure', async () => {
        const { network } = provider
        const present = await configureClone(proxmox, { at, owner, network, wanted, locked, signal })
        // Only for the result, so it is stored with the next write.
        details = { ...details, filter: await protect(at, wanted.network, signal) }
        const inject = () => injector.before({ ...at, present }, machineSeed, note, signal)
        image = await inject().catch(async error => {
          const other = withoutSeedStorage(provider, template, error)
          if (other === undefined) throw error
          machineSeed = { ...machineSeed, injection: other }
          details = { ...details, injection: other }
          return inject()
        })
      })
      await lap('start', () => starting(node, () => start(at, signal), signal))
      startAgentTransport(machine.id, at)
      await lap('boot', async () => {
        await injector.after(at, machineSeed, signal)
        await firstWord(machine.id, at, signal)
      })
      unpublish(machineSeed.seedName)
      await note({ vmid, ready: true, phases })
      if (image) seedImages.retire(machine.id, image)
    } catch (error) {
      timed?.(phases)
      throw worthAnotherTry(isTimeout(signal.reason) ? tooLate(error, phase) : error)
    } finally {
      nodes.release(node, wanted)
      // The other ids stay reserved until their machine is gone.
      for (const vmid of taken) vmids.release(vmid)
    }
  }

  /** Sets the firewall rules and returns whether they have effect. */
  const protect = async (at: At, network: 'none' | 'full', signal: AbortSignal): Promise<Filter> => {
    if (!provider.network.firewall) return 'off'
    const callback = provider.channel === 'agent' ? undefined : await address()
    const plan = planFirewall({ network, callback, privateAddresses: provider.network.privateAddresses })
    await locked(() => applyFirewall(proxmox, at, plan, signal), signal)
    return enforced(signal)
  }

  const start = async (at: At, signal: AbortSignal): Promise<void> => {
    const begin = async (): Promise<void> => {
      const task = await proxmox.post<string>(
        path`/nodes/${at.node}/qemu/${at.vmid}/status/start`,
        {},
        { signal },
      )
      await proxmox.waitTask(task, { signal, deadline: proxmox.clock.now() + TASK_MS })
    }
    await locked(begin, signal).catch(error => {
      // Already running: an earlier start request succeeded and its response was lost.
      if (proxmoxDetails(error)?.kind !== 'running') throw error
    })
  }

  /**
   * Finds a machine that was booting when an earlier daemon ended. It must get its runner from an image: the other
   * methods need the token, of which only the hash is stored.
   */
  const booting = async (machine: Machine, signal: AbortSignal): Promise<Booting | undefined> => {
    const details = detailsOf(machine)
    const { vmid, node, tokenHash, seed, injection, ready } = details
    if (ready || injection !== 'iso' || vmid === undefined || !node || !tokenHash || !seed) return undefined
    const found = await locateVm(proxmox, { node, vmid }, signal)
    if (found.kind !== 'there' || !found.running) return undefined
    return { at: { node: found.node, vmid }, tokenHash, seed, seedNode: node }
  }

  /** Continues with a machine that was booting when an earlier daemon ended; false if there is none. */
  const resume = async ({ machine, remember, signal }: CreateRequest): Promise<boolean> => {
    const found = await booting(machine, signal)
    if (found === undefined) return false
    const { at, tokenHash, seed, seedNode } = found
    sessions.add(machine.id, tokenHash)
    startAgentTransport(machine.id, at)
    const began = performance.now()
    await firstWord(machine.id, at, signal)
    const phases = { ...detailsOf(machine).phases, boot: Math.round(performance.now() - began) }
    const moved = at.node === seedNode ? {} : { node: at.node, seedNode }
    await remember({ ...machine.details, ...moved, ready: true, phases })
    seedImages.retire(machine.id, { ...at, volid: seed, seedNode })
    return true
  }

  const firstWord = async (machineId: string, at: At, signal: AbortSignal): Promise<void> => {
    const end = proxmox.clock.now() + provider.bootSeconds * 1000
    while (sessions.get(machineId)?.firstContact === undefined) {
      signal.throwIfAborted()
      if (proxmox.clock.now() >= end)
        throw silent(
          at,
          provider.channel === 'agent' ? 'its guest agent' : (await address()).url,
          provider.bootSeconds,
        )
      await sessions.change(machineId, Math.min(5000, Math.max(50, end - proxmox.clock.now())), signal)
      if (sessions.get(machineId)?.firstContact !== undefined) return
      const found = await locateVm(proxmox, at, signal).catch(error => {
        if (!isOutage(error)) throw error
      })
      if (sessions.get(machineId)?.firstContact !== undefined) return
      if (found?.kind === 'gone' || (found?.kind === 'there' && !found.running)) throw died(at, found.kind)
    }
  }

  return { make, booting, resume, protect, vmids }
}

export type Provisioner = ReturnType<typeof createProvisioner>

interface At {
  readonly node: string
  readonly vmid: number
}

interface Booting {
  readonly at: At
  readonly tokenHash: string
  readonly seed: string
  readonly seedNode: string
}

export const wantedBy = (
  manifest: Manifest | undefined,
  provider: ProxmoxProviderOptions,
  poolTemplate?: string,
): Wanted => ({
  template: manifest?.vmTemplate ?? poolTemplate ?? provider.template,
  cores: Math.max(1, Math.ceil(manifest?.resources?.cpu ?? provider.defaults.cpu)),
  memory: Math.ceil(
    (manifest?.resources?.memory === undefined
      ? provider.defaults.memory
      : parseSize(manifest.resources.memory)) /
      2 ** 20,
  ),
  disk: manifest?.resources?.disk === undefined ? provider.defaults.disk : parseSize(manifest.resources.disk),
  // Everything on a list goes through our proxy.
  network: manifest?.network === 'full' ? 'full' : 'none',
})

/** The job has not started, so failed tasks and lost responses are retried on a new machine. */
const worthAnotherTry = (thrown: unknown): unknown => {
  const kind = proxmoxDetails(thrown)?.kind
  if (
    !(thrown instanceof AppError) ||
    !['task_failed', 'server', 'uncertain', 'exists', 'stale_lock'].includes(kind ?? '')
  )
    return thrown
  const { code, message, hint, details } = thrown
  return new AppError(code, message, {
    retryable: true,
    details,
    cause: thrown,
    ...(hint === undefined ? {} : { hint }),
  })
}

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

const silent = ({ vmid }: At, where: string, seconds: number) =>
  new AppError('timeout', `VM ${vmid} has started, but was not heard of at ${where} within ${seconds} s.`, {
    hint: 'Can machines reach this address? Does the template have cloud-init and curl? deputy doctor --probe. If it only boots slowly, raise proxmox.boot.',
  })

const died = ({ vmid }: At, how: 'gone' | 'there') =>
  new AppError(
    'unavailable',
    `VM ${vmid} ${how === 'gone' ? 'was destroyed' : 'switched itself off'} before it was heard of.`,
    {
      hint: 'Look at its console, and at the template: it must boot and run cloud-init.',
    },
  )
