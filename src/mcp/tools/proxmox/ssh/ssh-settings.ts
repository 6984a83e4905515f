import { homedir } from 'node:os'
import { AppError } from '../../../../jobs/errors.ts'
import { type Environment, readVariable } from '../../../../proxmox/env-variables.ts'

export interface SshSettings {
  readonly host: string
  readonly port: number
  readonly user: string
  /** The node that host is; containers elsewhere cannot be reached through it. */
  readonly node: string
  readonly keyPath: string | undefined
  /** `SHA256:…` of the host key. Without it the user's own known_hosts decides. */
  readonly fingerprint: string | undefined
}

/** From PROXMOX_SSH_*; undefined unless it was switched on. */
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
    throw new AppError('invalid', 'PROXMOX_SSH_ENABLED is set, but not which node it reaches.', {
      hint: 'Set PROXMOX_SSH_NODE to the name of the node and PROXMOX_SSH_HOST to its address.',
    })
  }
  const user = readVariable(env, 'PROXMOX_SSH_USER') ?? 'root'
  const port = Number(readVariable(env, 'PROXMOX_SSH_PORT') ?? 22)
  // ssh would take a name that starts with a dash for an option.
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

/** As `ssh-keygen -l` prints it, with or without the name of the hash and the padding. */
const fingerprintOf = (text: string | undefined): string | undefined => {
  if (text === undefined) return undefined
  const bare = text.replace(/^SHA256:/, '').replace(/=+$/, '')
  if (!/^[A-Za-z0-9+/]{43}$/.test(bare)) throw bad('PROXMOX_SSH_HOST_KEY_FINGERPRINT', text)
  return `SHA256:${bare}`
}

const bad = (name: string, value: string) =>
  new AppError('invalid', `${name} is "${value}", which cannot be used.`, {
    hint: name.endsWith('FINGERPRINT')
      ? 'ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub prints it on the node.'
      : `Correct ${name}.`,
  })
