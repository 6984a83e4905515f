import {
  appendFileSync,
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { has } from '../has.ts'

/** A user that exists in the mount namespace of the engine only. */
const USER = { name: 'deputy-rootless', id: 64_242, firstSubordinate: 1_000_000, subordinates: 65_536 }

/** Why Podman cannot run as an ordinary user here. */
export const missingForRootless = (): string | undefined =>
  has('newuidmap') && has('setpriv') ? undefined : 'uidmap is not installed'

const ENTER = fileURLToPath(new URL('enter-rootless.sh', import.meta.url))

/** Starts a program as that user. The directory of the engine becomes the user's home. */
export const asOrdinaryUser = (directory: string): string[] => {
  const { name, id, firstSubordinate, subordinates } = USER
  const lines = {
    passwd: `${name}:x:${id}:${id}::${directory}:/bin/sh`,
    subuid: `${name}:${firstSubordinate}:${subordinates}`,
    subgid: `${name}:${firstSubordinate}:${subordinates}`,
  }
  for (const [file, line] of Object.entries(lines)) {
    copyFileSync(join('/etc', file), join(directory, file))
    appendFileSync(join(directory, file), `${line}\n`)
  }
  mkdirSync(join(directory, 'runtime'), { mode: 0o700 })
  // The directory of a test run is closed to others.
  const above = dirname(directory)
  chmodSync(above, statSync(above).mode | 0o011)
  for (const path of ['.', 'runtime', 'downloads']) chownSync(join(directory, path), id, id)
  return ['unshare', '--mount', 'sh', ENTER, directory, String(id)]
}

/** The process that keeps the user namespace of a rootless Podman does not end with it. */
export const killProcessesOfUser = (): void => {
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    try {
      const [, real] = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
      if (Number(real) === USER.id) process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
}
