import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { AppError } from '../jobs/errors.ts'

/**
 * What the next daemon needs before it can show output of a run: secrets to redact, format, timeout. Stored encrypted
 * with the run.
 */
const runContext = z.object({
  secrets: z.array(z.string()),
  format: z.enum(['text', 'claude-stream-json']),
  isolation: z.array(z.string()),
  timeoutSeconds: z.number(),
})

export type RunContext = z.output<typeof runContext>

/** The first seals. The others open what was sealed before the first was configured. */
export type SealingKeys = readonly [Buffer, ...Buffer[]]

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Sealed with the first of the keys, which only daemons have, so the file on the machine reveals no secret. A secret
 * that the command prints is in its stored output on the machine until that is cleaned up.
 */
export const sealContext = (context: RunContext, [key]: SealingKeys): string => {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce)
  const sealed = Buffer.concat([cipher.update(JSON.stringify(context), 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64')
}

/** Throws when it was sealed with none of the keys: without the secrets in it, no output may be shown. */
export const openContext = (text: string, keys: SealingKeys): RunContext => {
  const bytes = Buffer.from(text, 'base64')
  const causes: unknown[] = []
  for (const key of keys)
    try {
      return openWith(key, bytes)
    } catch (cause) {
      causes.push(cause)
    }
  throw new AppError(
    'unavailable',
    'The context that is stored with the run was not sealed by this daemon.',
    {
      hint: 'Look at the machine; its output is not shown, as it could contain secrets.',
      retryable: false,
      cause: causes.at(-1),
    },
  )
}

const openWith = (key: Buffer, bytes: Buffer): RunContext => {
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  })
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
  const clear = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()])
  return runContext.parse(JSON.parse(clear.toString('utf8')))
}

/** Of a run that its machine does not know. */
export const NO_CONTEXT: RunContext = {
  secrets: [],
  format: 'text',
  isolation: ['unknown'],
  timeoutSeconds: 0,
}

/** The key of the fleet, if there is one, and the key of this installation. */
export const sealingKeys = (file: string, fleetKey: Buffer | undefined): SealingKeys =>
  fleetKey === undefined ? [ownKey(file)] : [fleetKey, ownKey(file)]

/** Reads the key of this installation, or creates it. */
const ownKey = (file: string): Buffer => {
  try {
    const key = readFileSync(file)
    if (key.length === KEY_BYTES) return key
  } catch {
    // Not there yet.
  }
  const key = randomBytes(KEY_BYTES)
  writeFileSync(file, key, { mode: 0o600 })
  return key
}
