import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { AppError } from '../../jobs/errors.ts'
import type { CommandSpec } from '../../ports.ts'

/** What a later daemon must know of a command; it waits on the node, beside it. */
export interface Memo {
  readonly secrets: readonly string[]
  readonly format: CommandSpec['format']
  readonly isolation: readonly string[]
  readonly timeoutSeconds: number
}

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Sealed with a key that never leaves this computer, so that this note tells no secret. What a command prints of them
 * is on the node's disk as it was printed, until it is cleaned up.
 */
export const sealMemo = (memo: Memo, key: Buffer): string => {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce)
  const sealed = Buffer.concat([cipher.update(JSON.stringify(memo), 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64')
}

/** Throws when it was not sealed with this key: without the secrets in it, no output may be shown. */
export const openMemo = (text: string, key: Buffer): Memo => {
  const bytes = Buffer.from(text, 'base64')
  try {
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    })
    decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
    const clear = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()])
    return JSON.parse(clear.toString('utf8')) as Memo
  } catch (cause) {
    throw new AppError(
      'unavailable',
      'What was noted beside the command on its node is not of this daemon.',
      {
        hint: 'Look at the node; nothing of its output is shown, as it could hold secrets.',
        retryable: false,
        cause,
      },
    )
  }
}

/** Of a command whose node has nothing of it any more. */
export const NO_MEMO: Memo = { secrets: [], format: 'text', isolation: ['unknown'], timeoutSeconds: 0 }

/** The key of this installation, made when it is not there yet. */
export const memoKey = (file: string): Buffer => {
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
