import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { AppError } from '../../../../jobs/errors.ts'
import { runProgram } from './run-program.ts'
import type { SshSettings } from './ssh-settings.ts'

/** The host name of the pinned key in our known_hosts file, independent of the address. */
export const PINNED_NAME = 'deputy-pinned'

/**
 * Users configure a fingerprint, but ssh needs the key itself. Looks up the key with the configured fingerprint and
 * writes it to a known_hosts file of ours. ssh then accepts only that key, so the scan need not be trusted.
 */
export const pinHostKey = async (
  settings: SshSettings,
  file: string,
  signal: AbortSignal,
): Promise<string> => {
  const { host, port, fingerprint } = settings
  const scan = await runProgram('ssh-keyscan', ['-T', '8', '-p', String(port), '--', host], {
    timeoutMs: 15_000,
    signal,
  }).catch(cause => {
    throw new AppError('unavailable', 'Cannot run ssh-keyscan.', {
      hint: 'Install the OpenSSH client.',
      cause,
      retryable: false,
    })
  })
  signal.throwIfAborted()
  const keys = scan.stdout
    .split('\n')
    .map(readKey)
    .filter(key => key !== undefined)
  const key = keys.find(one => one.fingerprint === fingerprint)
  if (!key)
    throw keys.length === 0
      ? silent(settings)
      : mismatch(
          settings,
          keys.map(one => one.fingerprint),
        )
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await writeFile(file, `${PINNED_NAME} ${key.type} ${key.blob}\n`, { mode: 0o600 })
  return key.type
}

const readKey = (line: string) => {
  const [, type, blob] = line.split(' ')
  if (line.startsWith('#') || !type || !blob) return undefined
  const digest = createHash('sha256').update(Buffer.from(blob, 'base64')).digest('base64').replace(/=+$/, '')
  return { type, blob, fingerprint: `SHA256:${digest}` }
}

const silent = ({ host, port }: SshSettings) =>
  new AppError('unavailable', `No SSH server answers at ${host}:${port}.`, {
    hint: 'Check PROXMOX_SSH_HOST and PROXMOX_SSH_PORT.',
  })

const mismatch = ({ host, fingerprint }: SshSettings, found: readonly string[]) =>
  new AppError(
    'denied',
    `The host key of ${host} does not match: expected ${fingerprint}, found ${found.join(', ')}.`,
    {
      hint: 'If the node was reinstalled, correct PROXMOX_SSH_HOST_KEY_FINGERPRINT. Otherwise the connection may be intercepted.',
    },
  )
