import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import type { SshTarget } from './arguments.ts'

export interface OpenSession {
  readonly child: ChildProcessWithoutNullStreams
  readonly connectMs: number
  /** Gives the place on the connection back. */
  release(): void
  discard(): void
}

export interface Spares {
  has(target: SshTarget): boolean
  put(target: SshTarget, session: OpenSession): void
  take(target: SshTarget): OpenSession | undefined
  /** Of one node, or all. */
  drop(id?: string): void
}

interface Spare {
  id: string
  session: OpenSession
  timer: NodeJS.Timeout
}

/** At most one session a node that nobody uses yet. */
export const createSpares = (keepMs: number): Spares => {
  const spares = new Map<string, Spare>()

  const remove = (key: string): OpenSession | undefined => {
    const spare = spares.get(key)
    if (!spare) return undefined
    spares.delete(key)
    clearTimeout(spare.timer)
    return spare.session
  }

  return {
    has: target => spares.has(keyOf(target)),
    put: (target, session) => {
      const key = keyOf(target)
      remove(key)?.discard()
      const timer = setTimeout(() => remove(key)?.discard(), keepMs)
      timer.unref()
      session.child.unref()
      session.child.once('exit', () => {
        if (spares.get(key)?.session === session) remove(key)?.release()
      })
      spares.set(key, { id: target.id, session, timer })
    },
    take: target => {
      const session = remove(keyOf(target))
      if (!session) return undefined
      if (session.child.exitCode !== null || session.child.signalCode !== null) {
        session.release()
        return undefined
      }
      session.child.ref()
      return session
    },
    drop: id => {
      for (const [key, spare] of [...spares]) if (id === undefined || spare.id === id) remove(key)?.discard()
    },
  }
}

const keyOf = (target: SshTarget): string => JSON.stringify(target)
