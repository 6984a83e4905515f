import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { signalAll } from './process-tree.ts'

const ROUNDS = 40

/**
 * Kills every process with the variable in its environment, even if it has left its process group and session.
 * With `exact` false, matches every value with this prefix.
 */
export const killByEnvironment = async (name: string, value: string, exact = true): Promise<void> => {
  for (let round = 0; round < ROUNDS; round++) {
    const found = findByEnvironment(name, value, exact)
    if (found.length === 0) return
    signalAll(found, 'SIGSTOP')
    signalAll(found, 'SIGKILL')
    await delay(10)
  }
}

const findByEnvironment = (name: string, value: string, exact: boolean): number[] => {
  const wanted = Buffer.from(`${name}=${value}${exact ? '\0' : ''}`)
  return readdirSync('/proc').flatMap(entry => {
    if (!/^\d+$/.test(entry)) return []
    try {
      return readFileSync(`/proc/${entry}/environ`).includes(wanted) ? [Number(entry)] : []
    } catch {
      return [] // The process has exited or belongs to another user.
    }
  })
}
