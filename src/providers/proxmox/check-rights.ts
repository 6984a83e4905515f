import type { Check } from '../../ports.ts'
import { checkPermissions } from '../../proxmox/check-permissions.ts'
import type { Injection } from './choose-injection.ts'
import type { Template } from './cluster-guests.ts'
import type { Drive } from './drives.ts'
import { bridgeOf } from './net-device.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'

interface Situation {
  readonly template: Template
  readonly injection: Injection | undefined
  readonly major: number
}

/** Checks the rights of the token beyond the minimum that jobs need. */
export const rightsCheck = async (
  { proxmox, network, seedStorage, pool, injection: wish }: ProxmoxProviderOptions,
  { template, injection, major }: Situation,
  signal: AbortSignal,
): Promise<Check> => {
  const { credentials } = proxmox.settings
  const bridge = network.bridge ?? bridgeOf(template.config)
  const storagesOf = (...kinds: Drive['kind'][]) => [
    ...new Set(template.drives.filter(drive => kinds.includes(drive.kind)).map(drive => drive.storage)),
  ]
  const { missing, commands } = await checkPermissions(
    proxmox.request,
    {
      major,
      template: template.vmid,
      pool,
      diskStorages: storagesOf('disk', 'cloudinit'),
      imageStorages: storagesOf('cdrom'),
      user: credentials.user,
      ...(credentials.kind === 'token' ? { tokenId: credentials.id } : {}),
      ...(seedStorage === undefined || wish === 'http' || wish === 'agent' ? {} : { seedStorage }),
      ...(bridge === undefined ? {} : { bridge }),
      ...(network.zone === undefined ? {} : { zone: network.zone }),
    },
    { signal },
  )
  if (missing.length === 0)
    return { name: 'rights', status: 'ok', message: 'the token has every right that jobs need' }
  // Only a warning: the runner is injected in a way that does not need the seed storage.
  const onlySeeds = injection !== 'iso' && missing.every(one => one.path === `/storage/${seedStorage}`)
  const listed = missing.map(one => `${one.privileges.join(', ')} on ${one.path}`).join('; ')
  return {
    name: 'rights',
    status: onlySeeds ? 'warning' : 'failed',
    message: `missing: ${listed}`,
    fix: commands.join('\n'),
  }
}
