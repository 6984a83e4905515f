import type { CreateRequest, Machine } from '../../ports.ts'
import { waitForFirstContact } from './first-contact.ts'
import { locateVm } from './locate-vm.ts'
import type { ProvisionerOptions } from './provision-vm.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import { detailsOf } from './vm-details.ts'
import type { VmRef } from './vm-ref.ts'

export interface Booting {
  readonly at: VmRef
  readonly tokenHash: string
  readonly seed: string
  readonly seedNode: string
}

/**
 * Finds a machine that was booting when an earlier daemon ended. It must get its runner from an image: the other
 * methods need the token, of which only the hash is stored.
 */
export const findBooting = async (
  { proxmox }: ProxmoxProviderOptions,
  machine: Machine,
  signal: AbortSignal,
): Promise<Booting | undefined> => {
  const details = detailsOf(machine)
  const { vmid, node, tokenHash, seed, injection, ready } = details
  if (ready || injection !== 'iso' || vmid === undefined || !node || !tokenHash || !seed) return undefined
  const found = await locateVm(proxmox, { node, vmid }, signal)
  if (found.kind !== 'there' || !found.running) return undefined
  return { at: { node: found.node, vmid }, tokenHash, seed, seedNode: node }
}

/** Continues with a machine that was booting when an earlier daemon ended; false if there is none. */
export const resumeBoot = async (
  options: ProvisionerOptions,
  { machine, remember, signal }: CreateRequest,
): Promise<boolean> => {
  const { provider, sessions, seedImages, startAgentTransport } = options
  const found = await findBooting(provider, machine, signal)
  if (found === undefined) return false
  const { at, tokenHash, seed, seedNode } = found
  sessions.add(machine.id, tokenHash)
  startAgentTransport(machine.id, at)
  const began = performance.now()
  await waitForFirstContact(options, { machineId: machine.id, ...at }, signal)
  const phases = { ...detailsOf(machine).phases, boot: Math.round(performance.now() - began) }
  const moved = at.node === seedNode ? {} : { node: at.node, seedNode }
  await remember({ ...machine.details, ...moved, ready: true, phases })
  seedImages.retire(machine.id, { ...at, volid: seed, seedNode })
  return true
}
