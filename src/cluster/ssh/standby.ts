import type { SshTarget } from './arguments.ts'
import type { OpenSession } from './session.ts'

/** A session that was opened ahead and waits on the node for its script. */
export interface Standby {
  readonly session: OpenSession
  /** What it said when it was ready: tells what kind of script it takes. */
  readonly greeting: string
}

export interface Standbys {
  count(target: SshTarget): number
  put(target: SshTarget, standby: Standby): void
  take(target: SshTarget): Standby | undefined
  /** Of one node, or all. */
  drop(id?: string): void
}

interface Kept extends Standby {
  readonly id: string
  readonly key: string
  readonly timer: NodeJS.Timeout
}

/** Not for long: each is a process on the node and a place on the connection. */
export const createStandbys = (keepMs: number): Standbys => {
  const kept = new Set<Kept>()
  const of = (target: SshTarget): Kept[] => [...kept].filter(({ key }) => key === keyOf(target))

  const remove = (entry: Kept): Kept => {
    kept.delete(entry)
    clearTimeout(entry.timer)
    return entry
  }

  return {
    count: target => of(target).length,
    put: (target, standby) => {
      const timer = setTimeout(() => remove(entry).session.discard(), keepMs)
      timer.unref()
      const entry: Kept = { ...standby, id: target.id, key: keyOf(target), timer }
      entry.session.child.unref()
      entry.session.child.once('exit', () => remove(entry))
      kept.add(entry)
    },
    take: target => {
      const [oldest] = of(target)
      if (!oldest) return undefined
      remove(oldest).session.child.ref()
      return oldest
    },
    drop: id => {
      for (const entry of [...kept]) if (id === undefined || entry.id === id) remove(entry).session.discard()
    },
  }
}

const keyOf = (target: SshTarget): string => JSON.stringify(target)
