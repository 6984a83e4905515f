import { AppError } from '../../jobs/errors.ts'
import type { Template } from './cluster-guests.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import { isHttps } from './validate-settings.ts'

export type Injection = 'iso' | 'http' | 'agent'

/** The privileges needed to upload images to a storage and to delete them. */
const SEED_RIGHTS = ['Datastore.AllocateTemplate', 'Datastore.Allocate']

/** How long a positive privilege check is cached. If the privilege is lost, the next call fails and names it. */
const SURE_MS = 15_000

/** Chooses how machines of a template get their runner: as configured, else by what the token and template allow. */
export const createInjectionChoice = (provider: ProxmoxProviderOptions) => {
  const { clock } = provider.proxmox
  let sureAt = Number.NEGATIVE_INFINITY

  const maySeedFor = async (storage: string, signal: AbortSignal): Promise<boolean> => {
    if (clock.now() - sureAt < SURE_MS) return true
    const may = await maySeed(provider, storage, signal)
    if (may) sureAt = clock.now()
    return may
  }
  return (template: Template, signal: AbortSignal): Promise<Injection> =>
    choose(provider, template, storage => maySeedFor(storage, signal))
}

const choose = async (
  { injection, seedStorage, channel, callback, network }: ProxmoxProviderOptions,
  template: Template,
  maySeed: (storage: string) => Promise<boolean>,
): Promise<Injection> => {
  if (injection !== 'auto') return injection
  if (seedStorage !== undefined && (await maySeed(seedStorage))) return 'iso'
  const other = withoutImage({ channel, callback, network }, template)
  if (other !== undefined) return other
  // This fails with an error that names the missing privileges.
  if (seedStorage !== undefined) return 'iso'
  throw new AppError('invalid', `No way to install the runner in machines of template ${template.vmid}.`, {
    hint: `Set PROXMOX_SEED_STORAGE, or enable the guest agent: qm set ${template.vmid} --agent enabled=1`,
  })
}

/** How a machine gets its runner when no image can be stored for it; undefined when it cannot. */
export const withoutImage = (
  { channel, callback, network }: Pick<ProxmoxProviderOptions, 'channel' | 'callback' | 'network'>,
  { config }: Pick<Template, 'config'>,
): 'http' | 'agent' | undefined => {
  const connected = config.net0 !== undefined || network.bridge !== undefined
  if (channel === 'callback' && connected && !isHttps(callback)) return 'http'
  return hasAgent(config) ? 'agent' : undefined
}

export const hasAgent = (config: Readonly<Record<string, unknown>>): boolean =>
  /^(enabled=)?1(,|$)/.test(String(config.agent ?? ''))

const maySeed = async (
  { proxmox }: ProxmoxProviderOptions,
  storage: string,
  signal: AbortSignal,
): Promise<boolean> => {
  const path = `/storage/${storage}`
  const held = await proxmox.get<Record<string, Record<string, unknown>> | null>(
    '/access/permissions',
    { path },
    { signal },
  )
  return SEED_RIGHTS.every(right => held?.[path]?.[right] !== undefined)
}
