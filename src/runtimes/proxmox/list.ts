import type { FoundMachine } from '../../ports.ts'
import { path } from '../../proxmox/encode.ts'
import { proxmoxDetails } from '../../proxmox/errors.ts'
import { identityOf, isOurs, ownerTag, seedMachine } from './identity.ts'
import { listGuests, listNodes, readConfig } from './inventory.ts'
import type { ProxmoxRuntimeOptions } from './options.ts'
import type { Sessions } from './sessions.ts'

/** Every VM that is provably ours, and every seed image of ours that has lost its VM. */
export const listMachines = async (
  sessions: Sessions,
  runtime: ProxmoxRuntimeOptions,
  signal: AbortSignal,
): Promise<FoundMachine[]> => {
  const { proxmox, owner, vmids, pool } = runtime
  const found = new Map<string, FoundMachine>()
  for (const guest of await listGuests(proxmox, signal)) {
    const inRange = guest.vmid >= vmids.first && guest.vmid <= vmids.last
    // Between clone and configuration a machine has our description but the template's tags.
    const mine =
      guest.tags.includes(ownerTag(owner)) || guest.name === undefined || guest.name.startsWith('deputy-')
    if (!inRange || !mine || guest.template) continue
    const config = await readConfig(proxmox, guest, signal).catch(ignoreGone)
    if (!config || !isOurs({ ...guest, config }, { owner, vmids, pool })) continue
    const { machineId, createdAt, tokenHash } = identityOf(String(config.description))!
    // Machines that were booted before this daemon go on talking to it.
    sessions.add(machineId, tokenHash)
    found.set(machineId, { id: machineId, details: { vmid: guest.vmid, node: guest.node }, createdAt })
  }
  for (const seed of await listSeeds(runtime, signal)) {
    const machine = found.get(seed.id) ?? seed
    found.set(seed.id, { ...machine, details: { ...seed.details, ...machine.details } })
  }
  return [...found.values()]
}

const listSeeds = async (
  { proxmox, seedStorage, owner }: ProxmoxRuntimeOptions,
  signal: AbortSignal,
): Promise<FoundMachine[]> => {
  if (seedStorage === undefined) return []
  const seeds: FoundMachine[] = []
  for (const { node, online } of await listNodes(proxmox, signal)) {
    if (!online) continue
    const rows = await proxmox
      .get<{ volid: string; ctime?: number }[]>(
        path`/nodes/${node}/storage/${seedStorage}/content`,
        { content: 'iso' },
        { signal },
      )
      .catch(ignoreGone)
    for (const { volid, ctime } of rows ?? []) {
      const id = seedMachine(volid, owner)
      if (id)
        seeds.push({ id, details: { node, seed: volid }, ...(ctime ? { createdAt: ctime * 1000 } : {}) })
    }
  }
  return seeds
}

const ignoreGone = (error: unknown): undefined => {
  const kind = proxmoxDetails(error)?.kind
  if (kind === 'missing' || kind === 'permission' || kind === 'server') return undefined
  throw error
}
