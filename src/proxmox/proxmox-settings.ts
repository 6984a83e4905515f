import { AppError } from '../jobs/errors.ts'
import { type Credentials, parseCredentials } from './credentials.ts'
import { type Endpoint, parseEndpoints } from './endpoints.ts'
import { type Environment, readVariable } from './env-variables.ts'
import { parseTlsSettings, type TlsSettings } from './tls-settings.ts'

export interface ProxmoxSettings {
  /** Every host reaches the whole cluster. Later ones are used if the earlier ones do not answer. */
  readonly endpoints: readonly Endpoint[]
  readonly credentials: Credentials
  readonly tls: TlsSettings
  readonly timeoutMs: number
}

/** pveproxy reports an unresponsive pvedaemon with 596 after 30 s. A shorter timeout would hide that. */
const DEFAULT_TIMEOUT_MS = 45_000

export const parseSettings = (env: Environment, trustFile?: string): ProxmoxSettings => ({
  endpoints: parseEndpoints(env),
  credentials: parseCredentials(env),
  tls: parseTlsSettings(env, trustFile),
  timeoutMs: parseTimeout(readVariable(env, 'PROXMOX_TIMEOUT')),
})

/** True if the user has configured Proxmox, even if the settings are invalid. */
export const isConfigured = (env: Environment): boolean => readVariable(env, 'PROXMOX_HOST') !== undefined

const parseTimeout = (text: string | undefined): number => {
  if (text === undefined) return DEFAULT_TIMEOUT_MS
  const ms = Number(text)
  if (Number.isInteger(ms) && ms >= 1000 && ms <= 600_000) return ms
  throw new AppError(
    'invalid',
    `PROXMOX_TIMEOUT is "${text}", not a number of milliseconds from 1000 to 600000.`,
    {
      hint: 'Leave it unset for 45000.',
    },
  )
}
