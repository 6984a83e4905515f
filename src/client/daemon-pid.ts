import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The process that holds the lock of a home. The daemon writes this file right after it has taken the lock, so that
 * it can be found without a socket. The start time tells the process from another one that reuses its pid.
 */
interface DaemonPid {
  readonly pid: number
  readonly birth: string
}

interface PidHome {
  readonly stateDir: string
}

const fileOf = ({ stateDir }: PidHome): string => join(stateDir, 'daemon.pid')

export const writeDaemonPid = (home: PidHome): void => {
  const record: DaemonPid = { pid: process.pid, birth: startTimeOf(process.pid) ?? '' }
  try {
    writeFileSync(fileOf(home), `${JSON.stringify(record)}\n`, { mode: 0o600 })
  } catch {
    // A full disk must not prevent the start; clients also find the daemon by its socket.
  }
}

export const removeDaemonPid = (home: PidHome): void => rmSync(fileOf(home), { force: true })

/** The pid of the daemon that holds this home, verified; undefined when there is none. */
export const findDaemonPid = (home: PidHome): number | undefined => {
  const record = readRecord(home)
  return record !== undefined && startTimeOf(record.pid) === record.birth ? record.pid : undefined
}

const readRecord = (home: PidHome): DaemonPid | undefined => {
  try {
    const record: Partial<DaemonPid> = JSON.parse(readFileSync(fileOf(home), 'utf8'))
    const { pid, birth } = record
    return typeof pid === 'number' && pid > 1 && typeof birth === 'string' ? { pid, birth } : undefined
  } catch {
    return undefined
  }
}

/** Boot id and start time of a process; undefined when it does not exist or is a zombie. */
const startTimeOf = (pid: number): string | undefined => {
  try {
    if (process.platform !== 'linux')
      return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim()
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The program name may contain blanks and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (fields[0] === 'Z') return undefined
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${fields[19]}`
  } catch {
    return undefined
  }
}
