import { randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { CallbackConfig, ProxmoxProviderConfig } from '../../config/proxmox-section.ts'
import { keepFile } from '../../files/keep-file.ts'
import { createCertificate } from '../../guest/certificate.ts'
import { parseSize } from '../../jobs/sizes.ts'
import type { Blobs, Provider } from '../../ports.ts'
import { type Logger, silentLogger } from '../../proxmox/logger.ts'
import { createProxmox } from '../../proxmox/proxmox-client.ts'
import { parseSettings } from '../../proxmox/proxmox-settings.ts'
import { createProxmoxProvider } from './proxmox-provider.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import { validateSettings } from './validate-settings.ts'

export interface FromConfig {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stateDir: string
  /** For data that can be fetched again, such as the API catalogue of the cluster. */
  readonly cacheDir?: string
  /** Certificates that the user trusts. */
  readonly trustFile?: string
  readonly proxmox: ProxmoxProviderConfig
  readonly callback: CallbackConfig
  readonly defaults: { readonly cpu: number; readonly memory: string; readonly disk?: string | undefined }
  readonly keep: ProxmoxProviderOptions['keep']
  readonly graceSeconds: number
  readonly blobs: Blobs
  readonly log: Logger
  readonly onCall?: ProxmoxProviderOptions['onCall']
}

type OpenOptions = Omit<ProxmoxProviderOptions, 'proxmox' | 'log'> & {
  readonly env: FromConfig['env']
  readonly log?: Logger
  readonly cacheDir?: string | undefined
  readonly trustFile?: string | undefined
}

/** @public Opens the provider for the cluster named in the environment; the contract tests load it by name. */
export const openProxmoxProvider = ({
  env,
  log = silentLogger,
  cacheDir,
  trustFile,
  ...options
}: OpenOptions): Provider => {
  const kept = cacheDir === undefined ? {} : { cacheDir }
  return createProxmoxProvider({
    ...options,
    log,
    proxmox: createProxmox(parseSettings(env, trustFile), { logger: log, ...kept }),
  })
}

/** The provider as the configuration describes it. Throws when the settings of the cluster are wrong. */
export const proxmoxFromConfig = async (options: FromConfig): Promise<Provider> => {
  const { proxmox, callback, defaults, log } = options
  validateSettings(proxmox, callback)
  await mkdir(options.stateDir, { recursive: true, mode: 0o700 })
  const owner = await keepFile(join(options.stateDir, 'proxmox-owner'), () => randomBytes(6).toString('hex'))
  const tls = callback.tls ? await guestCertificate(options.stateDir) : undefined
  return openProxmoxProvider({
    env: options.env,
    cacheDir: options.cacheDir,
    trustFile: options.trustFile,
    blobs: options.blobs,
    log,
    ...(options.onCall && { onCall: options.onCall }),
    owner: owner.trim(),
    limit: proxmox.running,
    poolSize: proxmox.warm,
    poolAgeSeconds: proxmox.warmAge,
    ...(proxmox.warmTemplates && { poolTemplates: proxmox.warmTemplates }),
    template: proxmox.template,
    pool: proxmox.pool,
    vmids: { first: proxmox.firstVmid, last: proxmox.lastVmid },
    ...(proxmox.seedStorage === undefined ? {} : { seedStorage: proxmox.seedStorage }),
    injection: proxmox.injection,
    channel: proxmox.channel,
    network: {
      firewall: proxmox.firewall,
      privateAddresses: proxmox.privateAddresses,
      ...(proxmox.bridge === undefined ? {} : { bridge: proxmox.bridge }),
      ...(proxmox.zone === undefined ? {} : { zone: proxmox.zone }),
      ...(proxmox.vlan === undefined ? {} : { tag: proxmox.vlan }),
      ...(proxmox.rate === undefined ? {} : { rate: proxmox.rate }),
    },
    callback: {
      host: callback.host,
      port: callback.port,
      ...(callback.url === undefined ? {} : { url: callback.url }),
      ...(tls === undefined ? {} : { tls }),
    },
    defaults: {
      cpu: defaults.cpu,
      memory: parseSize(defaults.memory),
      disk: defaults.disk === undefined ? undefined : parseSize(defaults.disk),
    },
    parallel: { clones: proxmox.clones, starts: proxmox.starts, deletes: proxmox.deletes },
    keep: options.keep,
    graceSeconds: options.graceSeconds,
    heartbeatSeconds: HEARTBEAT_SECONDS,
    bootSeconds: proxmox.boot,
  })
}

/** Each heartbeat also returns a stop request, so a silent command is stopped within this time. */
const HEARTBEAT_SECONDS = 5

const CERTIFICATE = z.object({ cert: z.string(), key: z.string() })

/** One certificate for the life of the installation: running machines pin its key and do not check its name. */
const guestCertificate = async (stateDir: string) => {
  const text = await keepFile(join(stateDir, 'guest-certificate.json'), () =>
    JSON.stringify(createCertificate({ commonName: 'deputy', days: 3650 })),
  )
  return CERTIFICATE.parse(JSON.parse(text))
}
