/** Advisory locks with a timeout, shared or exclusive, as flock gives them. */
export interface Locks {
  hold<T>(
    name: string,
    options: { timeoutMs: number; message: string; shared?: boolean },
    work: () => Promise<T>,
  ): Promise<T>
  isHeld(name: string): boolean
  /** Takes a lock that nobody gives back: what a crashed worker leaves. */
  jam(name: string): () => void
}

export const createLocks = (): Locks => {
  const held = new Map<string, Holder>()

  const tryTake = (name: string, shared: boolean): boolean => {
    const holder = held.get(name)
    if (holder === undefined) held.set(name, { shared, count: 1, waiting: [] })
    else if (holder.count === 0) Object.assign(holder, { shared, count: 1 })
    else if (shared && holder.shared) holder.count++
    else return false
    return true
  }

  const give = (name: string): void => {
    const holder = held.get(name)!
    holder.count--
    const waiting = holder.waiting.splice(0)
    if (holder.count === 0 && waiting.length === 0) held.delete(name)
    for (const wake of waiting) wake()
  }

  const take = async (name: string, shared: boolean, timeoutMs: number, message: string): Promise<void> => {
    const end = Date.now() + timeoutMs
    while (!tryTake(name, shared)) {
      const left = end - Date.now()
      if (left <= 0) throw new Error(message)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, left)
        held.get(name)!.waiting.push(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    }
  }

  return {
    hold: async (name, { timeoutMs, message, shared = false }, work) => {
      await take(name, shared, timeoutMs, message)
      try {
        return await work()
      } finally {
        give(name)
      }
    },
    isHeld: name => (held.get(name)?.count ?? 0) > 0,
    jam: name => {
      tryTake(name, false)
      return () => give(name)
    },
  }
}

interface Holder {
  shared: boolean
  count: number
  waiting: (() => void)[]
}
