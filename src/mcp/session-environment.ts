import type { Environment } from '../proxmox/env-variables.ts'

const HEADER = 'x-deputy-environment'
/** All headers together may have 16 KiB. */
const MAX_CHARACTERS = 6144
const NAME = /^(PROXMOX|CLUSTER)_[A-Z0-9_]{1,60}$/

/**
 * The Proxmox and cluster settings of a client, with their values. They travel over the Unix socket of the user only, and stay in
 * the memory of the daemon.
 */
export const environmentHeader = (env: Environment): Record<string, string> => {
  const entries = Object.entries(env).filter(([name, value]) => NAME.test(name) && value)
  if (entries.length === 0) return {}
  const encoded = Buffer.from(JSON.stringify(Object.fromEntries(entries))).toString('base64url')
  return encoded.length > MAX_CHARACTERS ? {} : { [HEADER]: encoded }
}

export const carriesEnvironment = (headers: Readonly<Record<string, string>>): boolean => HEADER in headers

export const environmentOf = (headers: { get(name: string): string | null }): Environment => {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(headers.get(HEADER) ?? '', 'base64url').toString('utf8'))
    if (typeof parsed !== 'object' || parsed === null) return {}
    return Object.fromEntries(
      Object.entries(parsed).filter(([name, value]) => NAME.test(name) && typeof value === 'string'),
    )
  } catch {
    return {}
  }
}
