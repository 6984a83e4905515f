import type { CallbackConfig, ProxmoxRuntimeConfig } from '../../config/proxmox-runtime.ts'
import { AppError } from '../../jobs/errors.ts'

/** Refuses settings that are right one by one and cannot work together. */
export const validateSettings = (
  { injection, channel, seedStorage, firstVmid, lastVmid }: ProxmoxRuntimeConfig,
  callback: CallbackConfig,
): void => {
  if (lastVmid < firstVmid)
    throw new AppError(
      'invalid',
      `The range of VM ids ends at ${lastVmid}, before its begin at ${firstVmid}.`,
      {
        hint: 'Set proxmox.firstVmid and proxmox.lastVmid: deputy config explain',
      },
    )
  if (injection === 'iso' && seedStorage === undefined)
    throw new AppError('invalid', 'Seeds are to go into images, but no storage is named for them.', {
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
      'cloud-init cannot fetch a seed over HTTPS from us: it knows no key of ours.',
      {
        hint: 'Set PROXMOX_INJECTION to iso or agent, or use a callback address without HTTPS.',
      },
    )
}

/** Whether machines reach us over HTTPS only. */
export const isHttps = ({ url, tls }: { url?: string | undefined; tls?: unknown }): boolean =>
  url === undefined ? Boolean(tls) : /^https:/i.test(url)
