import { AppError } from '../../jobs/errors.ts'
import type { Address } from './callback-address.ts'
import type { GuestSessions } from './guest-sessions.ts'
import { locateVm } from './locate-vm.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import { isOutage } from './retry-through-outage.ts'
import type { VmRef } from './vm-ref.ts'

interface FirstContactOptions {
  readonly provider: ProxmoxProviderOptions
  readonly sessions: GuestSessions
  address(): Promise<Address>
}

/** Waits until a machine that boots has called. Throws when it is silent for too long, switched off or gone. */
export const waitForFirstContact = async (
  { provider, sessions, address }: FirstContactOptions,
  { machineId, ...at }: VmRef & { readonly machineId: string },
  signal: AbortSignal,
): Promise<void> => {
  const { proxmox } = provider
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

const silent = ({ vmid }: VmRef, where: string, seconds: number) =>
  new AppError('timeout', `VM ${vmid} has started, but did not call ${where} within ${seconds} s.`, {
    hint: 'Check that VMs reach this address and that the template has cloud-init and curl: deputy doctor --probe. If it boots slowly, raise proxmox.boot.',
  })

const died = ({ vmid }: VmRef, how: 'gone' | 'there') =>
  new AppError(
    'unavailable',
    `VM ${vmid} ${how === 'gone' ? 'was destroyed' : 'switched itself off'} before its first call.`,
    {
      hint: 'Look at its console, and at the template: it must boot and run cloud-init.',
    },
  )
