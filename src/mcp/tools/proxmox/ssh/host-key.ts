import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { AppError } from '../../../../jobs/errors.ts'
import { runProgram } from './run-program.ts'
import type { SshSettings } from './ssh-settings.ts'

/** The name a pinned key has in our own known_hosts, whatever the address is. */
export const PINNED_NAME = 'deputy-pinned'

/**
 * ssh knows keys, people know fingerprints. The key that has the configured fingerprint is looked up and written to a
 * file of ours; ssh then accepts that key and no other, so the scan itself need not be trusted.
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
    throw new AppError('unavailable', 'ssh-keyscan cannot be run.', {
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
    `${host} has none of the host keys it should have: ${fingerprint} is not among ${found.join(', ')}.`,
    {
      hint: 'Either the node was reinstalled, then correct PROXMOX_SSH_HOST_KEY_FINGERPRINT, or somebody is in between.',
    },
  )
