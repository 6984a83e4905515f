import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Process {
  readonly pid: number
  readonly parent: number
  /** Words separated by spaces; a zombie has none. */
  readonly command: string
  readonly zombie: boolean
}

/** Every process of this run's namespace. */
export const processes = (): Process[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(name => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'latin1')
        const [state = '', parent = ''] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        const command = readFileSync(`/proc/${name}/cmdline`, 'latin1').replaceAll('\0', ' ').trim()
        return [{ pid: Number(name), parent: Number(parent), command, zombie: state === 'Z' }]
      } catch {
        return [] // It ended meanwhile.
      }
    })

const matching = (pattern: RegExp): Process[] => processes().filter(({ command }) => pattern.test(command))

export const daemons = (): Process[] => matching(/\/cli\/main\.js daemon run$/)
export const shims = (): Process[] => matching(/\/shim\.js \{/)

export const signal = (pid: number, name: NodeJS.Signals): boolean => {
  try {
    return process.kill(pid, name)
  } catch {
    return false // It has ended.
  }
}

/** Stops a process for a while. It is continued whatever happens. */
export const freeze = async (pid: number, ms: number): Promise<void> => {
  signal(pid, 'SIGSTOP')
  await sleep(ms)
  signal(pid, 'SIGCONT')
}
