import { homedir } from 'node:os'
import { AppError } from '../../../../jobs/errors.ts'
import { type Environment, readVariable } from '../../../../proxmox/env-variables.ts'

export interface SshSettings {
  readonly host: string
  readonly port: number
  readonly user: string
  /** The cluster node at `host`. Containers on other nodes cannot be reached. */
  readonly node: string
  readonly keyPath: string | undefined
  /** `SHA256:…` of the host key. Without it, ssh checks the user's known_hosts. */
  readonly fingerprint: string | undefined
}

/** Reads PROXMOX_SSH_*; undefined unless PROXMOX_SSH_ENABLED is set. */
export const parseSshSettings = (env: Environment): SshSettings | undefined => {
  if (!/^(1|true|yes|on)$/i.test(readVariable(env, 'PROXMOX_SSH_ENABLED') ?? '')) return undefined
  const node = readVariable(env, 'PROXMOX_SSH_NODE')
  const host =
    readVariable(env, 'PROXMOX_SSH_HOST') ??
    readVariable(env, 'PROXMOX_HOST')
      ?.split(',')[0]
      ?.replace(/^https?:\/\//, '')
      .replace(/:\d+$/, '')
  if (node === undefined || host === undefined) {
    throw new AppError(
      'invalid',
      'PROXMOX_SSH_ENABLED is set, but PROXMOX_SSH_NODE or PROXMOX_SSH_HOST is missing.',
      {
        hint: 'Set PROXMOX_SSH_NODE to the name of the node and PROXMOX_SSH_HOST to its address.',
      },
    )
  }
  const user = readVariable(env, 'PROXMOX_SSH_USER') ?? 'root'
  const port = Number(readVariable(env, 'PROXMOX_SSH_PORT') ?? 22)
  // ssh would parse a name that starts with a dash as an option.
  if (!/^[A-Za-z0-9_[][A-Za-z0-9_.:\][-]*$/.test(host)) throw bad('PROXMOX_SSH_HOST', host)
  if (!/^[A-Za-z_][A-Za-z0-9_.-]*$/.test(user)) throw bad('PROXMOX_SSH_USER', user)
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw bad('PROXMOX_SSH_PORT', String(port))
  const key = readVariable(env, 'PROXMOX_SSH_KEY_PATH')
  return {
    host,
    port,
    user,
    node,
    keyPath: key?.replace(/^~(?=\/)/, env.HOME ?? homedir()),
    fingerprint: fingerprintOf(readVariable(env, 'PROXMOX_SSH_HOST_KEY_FINGERPRINT')),
  }
}

/** Accepts the format of `ssh-keygen -l`, with or without the `SHA256:` prefix and the padding. */
const fingerprintOf = (text: string | undefined): string | undefined => {
  if (text === undefined) return undefined
  const bare = text.replace(/^SHA256:/, '').replace(/=+$/, '')
  if (!/^[A-Za-z0-9+/]{43}$/.test(bare)) throw bad('PROXMOX_SSH_HOST_KEY_FINGERPRINT', text)
  return `SHA256:${bare}`
}

const bad = (name: string, value: string) =>
  new AppError('invalid', `Invalid ${name} "${value}".`, {
    hint: name.endsWith('FINGERPRINT')
      ? 'Print it on the node: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub'
      : `Correct ${name}.`,
  })
