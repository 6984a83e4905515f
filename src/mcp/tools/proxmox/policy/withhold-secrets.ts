import { isRecord } from '../../../../jobs/records.ts'
import type { Operation } from './api-operation.ts'

/** Names of fields and parameters that carry secrets. */
const SECRET_NAMES = new Set([
  'password',
  'confirmation-password',
  'cipassword',
  'bind_password',
  'ticket',
  'vncticket',
  'csrfpreventiontoken',
  'csrftoken',
  'secret',
  'token',
  'key',
  'keys',
  'privkey',
  'private-key',
  'client-key',
  'certkey',
  'keyring',
  'encryption-key',
  'eab-hmac-key',
  'otp',
  'totp',
  'recovery',
  'tfa-challenge',
  'challenge',
  'api_token',
])

export const isSecretName = (name: string): boolean => SECRET_NAMES.has(name.toLowerCase())

/** Paths where a field with another name carries a secret. */
const BY_PATH: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^access\/users\/[^/]+\/token\/[^/]+$/, ['value']],
  [/^access\/tfa\//, ['value', 'url']],
  [/^cluster\/acme\/plugins/, ['data']],
]

/** Paths where these names are not secret: lists of configuration keys, and key names of pending changes. */
const NOT_SECRET = /\/(pending|cloudinit)$|^cluster\/firewall|^cluster\/options$/

export interface Withheld {
  readonly data: unknown
  /** Names of the removed fields, and the content for the file; absent when there are no secrets. */
  readonly secret?: { readonly fields: readonly string[]; readonly content: string }
}

/** Removes secrets from a response, at any depth. */
export const withholdSecrets = (operation: Operation, answer: unknown): Withheld => {
  const path = operation.segments.join('/')
  const fields = new Set<string>()
  if (typeof answer === 'string') {
    const data = answer.replace(
      /^(\s*(?:-\s*)?(?:password|passwd|hashed_passwd):\s*)\S.*$/gm,
      (_, head: string) => {
        fields.add('password')
        return `${head}[withheld]`
      },
    )
    return fields.size === 0 ? { data } : { data, secret: { fields: [...fields], content: answer } }
  }
  const extra = BY_PATH.find(([pattern]) => pattern.test(path))?.[1] ?? []
  const names = (name: string) => extra.includes(name) || (isSecretName(name) && !NOT_SECRET.test(path))
  const data = strip(answer, names, fields)
  if (fields.size === 0) return { data: answer }
  return { data, secret: { fields: [...fields], content: `${JSON.stringify(answer, null, 2)}\n` } }
}

const strip = (value: unknown, isSecret: (name: string) => boolean, found: Set<string>): unknown => {
  if (Array.isArray(value)) return value.map(one => strip(one, isSecret, found))
  if (!isRecord(value)) return value
  const kept: Record<string, unknown> = {}
  for (const [key, inner] of Object.entries(value)) {
    if (isSecret(key) && carriesSecret(inner)) found.add(key)
    else kept[key] = strip(inner, isSecret, found)
  }
  return kept
}

/** False for empty values and for `***`, with which Proxmox masks some secrets itself. */
const carriesSecret = (value: unknown): boolean => {
  if (Array.isArray(value)) return value.some(carriesSecret)
  return typeof value === 'string' && value !== '' && !/^\*+$/.test(value)
}
