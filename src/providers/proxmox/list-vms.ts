import type { FoundMachine } from '../../ports.ts'
import type { ErrorKind } from '../../proxmox/classify-error.ts'
import { path } from '../../proxmox/encode.ts'
import { proxmoxDetails } from '../../proxmox/proxmox-errors.ts'
import { listGuests, listNodes, poolOf, readConfig } from './cluster-guests.ts'
import { identityOf, ownership, ownerTag, seedMachine } from './identity.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'

/**
 * Lists every VM that is provably ours and every seed image without a VM. Proxmox VE omits guests that the token may
 * not see, so a missing entry does not mean that the VM is gone.
 */
export const listMachines = async (
  provider: ProxmoxProviderOptions,
  signal: AbortSignal,
): Promise<FoundMachine[]> => {
  const { proxmox, owner, pool, vmids } = provider
  const found = new Map<string, FoundMachine>()
  for (const guest of await listGuests(proxmox, signal)) {
    const inRange = guest.vmid >= vmids.first && guest.vmid <= vmids.last
    // Between clone and configuration a machine has our description but the template's tags.
    const mine =
      guest.tags.includes(ownerTag(owner)) || guest.name === undefined || guest.name.startsWith('deputy-')
    if (!inRange || !mine || guest.template) continue
    const config = await readConfig(proxmox, guest, signal).catch(ignore(['missing']))
    if (!config) continue
    const seen = { vmid: guest.vmid, pool: await poolOf(proxmox, guest, pool, signal), config }
    if (ownership(seen, { owner, pool, vmids }) !== 'ours') continue
    const { machineId, createdAt } = identityOf(String(config.description))!
    found.set(machineId, { id: machineId, details: { vmid: guest.vmid, node: guest.node }, createdAt })
  }
  for (const seed of await listSeeds(provider, signal)) {
    const machine = found.get(seed.id) ?? seed
    found.set(seed.id, { ...machine, details: { ...seed.details, ...machine.details } })
  }
  return [...found.values()]
}

const listSeeds = async (
  { proxmox, seedStorage, owner }: ProxmoxProviderOptions,
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
      .catch(ignore(['missing', 'elsewhere', 'permission', 'server']))
    for (const { volid, ctime } of rows ?? []) {
      const id = seedMachine(volid, owner)
      if (id)
        seeds.push({
          id,
          leftover: true,
          details: { node, seed: volid, seedNode: node },
          ...(ctime ? { createdAt: ctime * 1000 } : {}),
        })
    }
  }
  return seeds
}

const ignore =
  (kinds: readonly ErrorKind[]) =>
  (error: unknown): undefined => {
    const kind = proxmoxDetails(error)?.kind
    if (kind === undefined || !kinds.includes(kind)) throw error
  }
