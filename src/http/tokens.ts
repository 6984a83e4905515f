import { randomBytes } from 'node:crypto'
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { keepFile } from '../files/keep-file.ts'
import { AppError } from '../jobs/errors.ts'

export interface Tokens {
  readonly full: string
  /** Grants the scope `read`. */
  readonly read: string
  /** Key that signs the sessions of the console. */
  readonly sessionKey: string
}

/** Reads the tokens of a home, and creates them at the first start. */
export const ensureTokens = async (stateDir: string): Promise<Tokens> => {
  await mkdir(stateDir, { recursive: true, mode: 0o700 })
  return {
    full: await ensureToken(join(stateDir, 'token')),
    read: await ensureToken(join(stateDir, 'token-readonly')),
    sessionKey: await ensureToken(join(stateDir, 'session-key')),
  }
}

const ensureToken = async (file: string): Promise<string> => {
  const token = (await keepFile(file, () => `${randomBytes(32).toString('base64url')}\n`)).trim()
  if (!/^[\x21-\x7e]{16,512}$/.test(token))
    throw new AppError('invalid', `Invalid token in ${file}: it needs 16 or more characters and no spaces.`, {
      hint: `Delete it to get a new one at the next start: rm '${file}'`,
    })
  // A backup or an editor may have made the file readable for others.
  await chmod(file, 0o600)
  return token
}
