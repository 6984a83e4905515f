import { constants } from 'node:os'
import { join } from 'node:path'
import { AppError } from '../../../../jobs/errors.ts'
import { shellQuote } from '../../../../runner/shell-words.ts'
import type { LxcCommand, LxcExec } from '../row-context.ts'
import { PINNED_NAME, pinHostKey } from './host-key.ts'
import { type ProgramResult, runProgram } from './run-program.ts'
import type { SshSettings } from './ssh-settings.ts'

export interface PctExecOptions {
  readonly settings: SshSettings
  /** Directory for the pinned host key. */
  readonly stateDir: string
  readonly pct?: string
}

/** Runs commands in containers with `pct exec` on their node, through the ssh program and the user's configuration. */
export const createPctExec = ({ settings, stateDir, pct = '/usr/sbin/pct' }: PctExecOptions): LxcExec => {
  const known = join(stateDir, 'pinned_hosts')
  let pinned: Promise<string> | undefined

  const hostKeyOptions = async (signal: AbortSignal): Promise<string[]> => {
    if (settings.fingerprint === undefined) return ['-o', 'StrictHostKeyChecking=yes']
    pinned ??= pinHostKey(settings, known, signal).catch(error => {
      pinned = undefined
      throw error
    })
    const algorithm = signatures(await pinned)
    return [
      ...[
        '-o',
        'StrictHostKeyChecking=yes',
        '-o',
        `UserKnownHostsFile=${known}`,
        '-o',
        'GlobalKnownHostsFile=/dev/null',
      ],
      ...[
        '-o',
        `HostKeyAlias=${PINNED_NAME}`,
        '-o',
        `HostKeyAlgorithms=${algorithm}`,
        '-o',
        'UpdateHostKeys=no',
      ],
    ]
  }

  return async command => {
    if (command.node !== settings.node) {
      throw new AppError(
        'unsupported',
        `SSH is set up for node ${settings.node}, and container ${command.vmid} is on ${command.node}.`,
        {
          hint: 'Set PROXMOX_SSH_NODE and PROXMOX_SSH_HOST to that node, or migrate the container.',
        },
      )
    }
    const argv = [
      ...[
        '-T',
        '-x',
        '-o',
        'BatchMode=yes',
        '-o',
        'ConnectTimeout=10',
        '-o',
        'ServerAliveInterval=15',
        '-o',
        'ServerAliveCountMax=3',
      ],
      ...['-o', 'ClearAllForwardings=yes', '-p', String(settings.port)],
      ...(settings.keyPath === undefined ? [] : ['-i', settings.keyPath, '-o', 'IdentitiesOnly=yes']),
      ...(await hostKeyOptions(command.signal)),
      ...['--', `${settings.user}@${settings.host}`, remoteCommand(command, pct)],
    ]
    const finished = await runProgram('ssh', argv, {
      timeoutMs: (command.timeoutS + 15) * 1000,
      signal: command.signal,
    })
    return report(finished, command)
  }
}

/**
 * ssh passes one line to the login shell of the node; the user's command is one quoted word in it. `; exit $?` keeps
 * the shell running, because it reports death by signal as 128 + number, where ssh would only return 255.
 */
const remoteCommand = ({ vmid, command, timeoutS }: LxcCommand, pct: string): string =>
  `timeout --kill-after=5 ${timeoutS} ${pct} exec ${vmid} -- /bin/sh -c ${shellQuote(command)}; exit $?`

/** RSA keys of type `ssh-rsa` use the SHA-2 signature algorithms. */
const signatures = (type: string) => (type === 'ssh-rsa' ? 'rsa-sha2-512,rsa-sha2-256' : type)

/** Exit status of timeout(1) when it killed the command. */
const TIMED_OUT = 124

const report = (finished: ProgramResult, { timeoutS }: LxcCommand) => {
  const { code, killed, stdout, stderr, truncated } = finished
  if (killed) {
    return {
      exited: false,
      killed: true,
      why: `not finished within ${timeoutS} s; it may still run in the container`,
      stdout,
      stderr,
    }
  }
  if (code === null)
    return { exited: false, killed: true, why: `ssh was killed by ${finished.signal}`, stdout, stderr }
  if (code === 255 && isSshFailure(stderr)) throw sshFailure(stderr)
  const outcome = code === TIMED_OUT ? { timed_out: true, killed: true } : bySignal(code)
  return { exited: true, exitcode: code, ...outcome, stdout, stderr, ...(truncated && { truncated }) }
}

/** A shell reports death by signal as 128 + signal number. */
const bySignal = (code: number) => {
  const name = Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0]
  return code > 128 && name ? { killed: true, signal: name } : {}
}

const isSshFailure = (stderr: string) =>
  /^(ssh: |Host key verification failed|.*: Permission denied|kex_exchange|Connection (closed|reset|timed out)|No .* host key is known|@@@)/m.test(
    stderr,
  )

const sshFailure = (stderr: string) => {
  const reason = stderr.trim().split('\n').at(-1) ?? ''
  const key = /host key/i.test(stderr)
  return new AppError(key ? 'denied' : 'unavailable', `SSH to the node failed: ${reason.slice(0, 300)}`, {
    retryable: false,
    hint: key
      ? 'Set PROXMOX_SSH_HOST_KEY_FINGERPRINT (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub on the node), or add the host to known_hosts.'
      : 'Check PROXMOX_SSH_USER and PROXMOX_SSH_KEY_PATH: ssh -o BatchMode=yes must work without a password.',
  })
}
