import type { CallbackConfig, ProxmoxProviderConfig } from '../../config/proxmox-section.ts'
import { AppError } from '../../jobs/errors.ts'

/** Rejects combinations of settings that cannot work. */
export const validateSettings = (
  { injection, channel, seedStorage, firstVmid, lastVmid }: ProxmoxProviderConfig,
  callback: CallbackConfig,
): void => {
  if (lastVmid < firstVmid)
    throw new AppError('invalid', `Invalid range of VM ids: ${firstVmid} to ${lastVmid}.`, {
      hint: 'Set proxmox.firstVmid and proxmox.lastVmid: deputy config explain',
    })
  if (injection === 'iso' && seedStorage === undefined)
    throw new AppError('invalid', 'PROXMOX_INJECTION is iso, but no storage is set for seed images.', {
      hint: 'Set PROXMOX_SEED_STORAGE, or PROXMOX_INJECTION=auto.',
    })
  if (injection === 'http' && channel === 'agent')
    throw new AppError(
      'invalid',
      'Machines that report through their guest agent cannot fetch a seed over HTTP.',
      {
        hint: 'Set PROXMOX_INJECTION to iso or agent, or PROXMOX_CHANNEL=callback.',
      },
    )
  if (injection === 'http' && isHttps(callback))
    throw new AppError(
      'invalid',
      'cloud-init cannot fetch a seed over HTTPS: it does not trust the certificate of the callback server.',
      {
        hint: 'Set PROXMOX_INJECTION to iso or agent, or use a callback address without HTTPS.',
      },
    )
}

/** Whether the callback address uses HTTPS. */
export const isHttps = ({ url, tls }: { url?: string | undefined; tls?: unknown }): boolean =>
  url === undefined ? Boolean(tls) : /^https:/i.test(url)
