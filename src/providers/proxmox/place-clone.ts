import type { CreateRequest } from '../../ports.ts'
import { createKeyedSemaphore } from '../../proxmox/keyed-semaphore.ts'
import { createInjectionChoice, type Injection } from './choose-injection.ts'
import { createNodeChoice } from './choose-node.ts'
import { cloneTemplate } from './clone-vm.ts'
import { createGuestList, findTemplate, type Template } from './cluster-guests.ts'
import { describe, nameOf } from './identity.ts'
import type { MachineRecord } from './machine-record.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import { retryThroughOutage } from './retry-through-outage.ts'
import type { VmSpec } from './vm-spec.ts'
import { createVmids } from './vmids.ts'

const TASK_MS = 600_000

/** Where a machine is made, from what, and how it gets its runner. */
interface Place {
  readonly template: Template
  readonly injection: Injection
  readonly node: string
  readonly linked: boolean
}

/** Chooses template, node and id of a new VM, and clones it. */
export const createClonePlacement = (provider: ProxmoxProviderOptions) => {
  const { proxmox, owner } = provider
  const vmids = createVmids(provider.vmids)
  const cloning = createKeyedSemaphore(provider.parallel.clones)
  const guestList = createGuestList(proxmox)
  const nodes = createNodeChoice(provider, guestList)
  const chooseInjection = createInjectionChoice(provider)

  /** Reports the reason of a wait. Only for waits before the VM exists: only those can be long. */
  const patiently = <T>({ signal, waiting }: CreateRequest, work: () => Promise<T>): Promise<T> =>
    retryThroughOutage(proxmox, work, { signal, waiting })

  const choose = async (request: CreateRequest, wanted: VmSpec): Promise<Place> => {
    const { signal } = request
    const template = await patiently(request, async () =>
      findTemplate(proxmox, wanted.template, await guestList.read(signal), signal),
    )
    const injection = await patiently(request, () => chooseInjection(template, signal))
    const needs = { memory: wanted.memory, injection }
    const { node, linked } = await patiently(request, () => nodes.choose(template, needs, signal))
    return { template, injection, node, linked }
  }

  /** Clones the template and returns the id of the clone. Ids of other guests are added to `taken`. */
  const clone = (
    request: CreateRequest,
    { template, node, linked }: Place,
    record: MachineRecord,
    taken: number[],
  ): Promise<number> => {
    const { machine, waiting, signal } = request
    const { tokenHash } = record
    const identity = { machineId: machine.id, owner, createdAt: proxmox.clock.now(), tokenHash }
    const doubtful: number[] = []
    const nextId = async (): Promise<number> => {
      const guests = await patiently(request, () => guestList.recent(signal))
      const vmid = vmids.take(new Set(guests.map(guest => guest.vmid)))
      await record.store({ vmid, doubtful: [...doubtful], cloneTask: undefined })
      return vmid
    }
    const work = () =>
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
          return record.store({ vmid: undefined, cloneTask: undefined })
        },
        doubt: id => void doubtful.push(id),
        began: task => record.store({ cloneTask: task }),
        deadline: proxmox.clock.now() + TASK_MS,
        waiting,
        signal,
      })
    // The task runs on the node of the template.
    return cloning(template.node, work, signal)
  }

  return { choose, clone, vmids, release: nodes.release }
}
