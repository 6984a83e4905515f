import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { z } from 'zod'

const CIPHER = 'aes-256-gcm'
const SALT = 16
const IV = 12
const TAG = 16

/**
 * Encrypts data that must survive a restart but must not be readable on disk. The key is derived from the machine's
 * token, of which only the hash is stored; the machine sends the token with its next request.
 */
export const seal = (token: string, value: unknown): string => {
  const salt = randomBytes(SALT)
  const iv = randomBytes(IV)
  const cipher = createCipheriv(CIPHER, keyOf(token, salt), iv)
  const sealed = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()])
  return Buffer.concat([salt, iv, cipher.getAuthTag(), sealed]).toString('base64')
}

/** Throws if the token is wrong, the text was changed, or the value does not fit the schema. */
export const unseal = <T>(token: string, text: string, schema: z.ZodType<T>): T => {
  const bytes = Buffer.from(text, 'base64')
  const salt = bytes.subarray(0, SALT)
  const decipher = createDecipheriv(CIPHER, keyOf(token, salt), bytes.subarray(SALT, SALT + IV))
  decipher.setAuthTag(bytes.subarray(SALT + IV, SALT + IV + TAG))
  const opened = Buffer.concat([decipher.update(bytes.subarray(SALT + IV + TAG)), decipher.final()])
  return schema.parse(JSON.parse(opened.toString('utf8')))
}

const keyOf = (token: string, salt: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', token, salt, 'deputy machine', 32))
