import { AppError } from '../jobs/errors.ts'
import { type Environment, readVariable } from './env-variables.ts'

/**
 * strict: the chain leads to a trusted CA and the name matches. verify: the chain leads to the configured CA, or the
 * fingerprint is pinned; the name is not checked, because the CA of a cluster only signs its own nodes.
 * insecure: accepts any certificate.
 */
type TlsMode = 'strict' | 'verify' | 'insecure'

export interface TlsSettings {
  readonly mode: TlsMode
  /** PEM text, or the path of a PEM file. */
  readonly ca?: { readonly pem: string } | { readonly file: string }
  /** SHA-256 fingerprints as Proxmox VE prints them: upper case, with colons. */
  readonly fingerprints: readonly string[]
  /** Certificates that the user trusts by `deputy proxmox trust`; absent when they must not count. */
  readonly trustFile?: string
}

export const parseTlsSettings = (env: Environment, trustFile?: string): TlsSettings => {
  const ca = parseCa(readVariable(env, 'PROXMOX_SSL_CA_CERT'))
  const fingerprints = (readVariable(env, 'PROXMOX_SSL_FINGERPRINT') ?? '')
    .split(',')
    .map(text => text.trim())
    .filter(text => text !== '')
    .map(parseFingerprint)
  const mode = parseMode(env, ca !== undefined || fingerprints.length > 0)
  const isStrict = readVariable(env, 'PROXMOX_SSL_MODE')?.toLowerCase() === 'strict'
  return {
    mode,
    fingerprints,
    ...(ca !== undefined && { ca }),
    ...(trustFile !== undefined && !isStrict && { trustFile }),
  }
}

export const parseFingerprint = (text: string): string => {
  const hex = text
    .replace(/^sha-?256[:= ]/i, '')
    .replaceAll(':', '')
    .toUpperCase()
  if (/^[0-9A-F]{64}$/.test(hex)) return hex.match(/../g)!.join(':')
  throw new AppError('invalid', `Invalid PROXMOX_SSL_FINGERPRINT "${text}".`, {
    hint: 'It is SHA-256, 32 bytes in hexadecimal; on the node: pvenode cert info --output-format yaml | grep fingerprint',
  })
}

const parseMode = (env: Environment, pinned: boolean): TlsMode => {
  const mode = readVariable(env, 'PROXMOX_SSL_MODE')?.toLowerCase()
  if (mode === 'strict' || mode === 'verify' || mode === 'insecure') return mode
  if (mode !== undefined) {
    throw new AppError('invalid', `PROXMOX_SSL_MODE is "${mode}", not strict, verify or insecure.`, {
      hint: 'For a self-signed certificate: PROXMOX_SSL_MODE=verify with PROXMOX_SSL_FINGERPRINT.',
    })
  }
  const verify = readVariable(env, 'PROXMOX_VERIFY_SSL')?.toLowerCase()
  if (verify !== undefined && ['0', 'false', 'no', 'off'].includes(verify)) return 'insecure'
  if (verify !== undefined && !['1', 'true', 'yes', 'on'].includes(verify)) {
    throw new AppError('invalid', `PROXMOX_VERIFY_SSL is "${verify}", not true or false.`, {
      hint: 'Or set PROXMOX_SSL_MODE to strict, verify or insecure.',
    })
  }
  return pinned ? 'verify' : 'strict'
}

const parseCa = (text: string | undefined) => {
  if (text === undefined) return undefined
  return text.includes('-----BEGIN CERTIFICATE-----') ? { pem: text } : { file: text }
}
