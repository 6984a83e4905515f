export interface BreakerOptions {
  /** Failures in a row that open the circuit. */
  threshold?: number
  /** How long it stays open the first time; doubles with every failed trial. */
  coolMs?: number
  maxCoolMs?: number
  now?: () => number
}

export interface Breakers {
  /** Why nothing may be sent to the node now; nothing when something may. Does not count as a trial. */
  closedReason(id: string): string | undefined
  /** Takes the single trial of a half-open circuit; true when the caller may go on. */
  enter(id: string): boolean
  succeeded(id: string): void
  failed(id: string, reason: string): void
  forget(id: string): void
}

interface Circuit {
  failures: number
  reason: string
  openUntil: number
  coolMs: number
  trial: boolean
}

/** One circuit a node: closed, open after failures in a row, then half-open for one trial at a time. */
export const createBreakers = (options: BreakerOptions = {}): Breakers => {
  const { threshold = 3, coolMs = 5_000, maxCoolMs = 300_000, now = Date.now } = options
  const circuits = new Map<string, Circuit>()
  const isOpen = (circuit: Circuit): boolean => circuit.failures >= threshold

  return {
    closedReason: id => {
      const circuit = circuits.get(id)
      if (!circuit || !isOpen(circuit)) return undefined
      const wait = circuit.openUntil - now()
      if (wait > 0)
        return `failed ${circuit.failures} times in a row (${circuit.reason}); next try in ${Math.ceil(wait / 1000)} s`
      return circuit.trial
        ? `is being tried after ${circuit.failures} failures (${circuit.reason})`
        : undefined
    },
    enter: id => {
      const circuit = circuits.get(id)
      if (!circuit || !isOpen(circuit)) return true
      if (circuit.trial || circuit.openUntil > now()) return false
      circuit.trial = true
      return true
    },
    succeeded: id => {
      circuits.delete(id)
    },
    failed: (id, reason) => {
      const circuit = circuits.get(id) ?? { failures: 0, reason, openUntil: 0, coolMs, trial: false }
      const again = isOpen(circuit)
      circuit.failures++
      circuit.reason = reason
      circuit.trial = false
      if (again) circuit.coolMs = Math.min(circuit.coolMs * 2, maxCoolMs)
      circuit.openUntil = now() + circuit.coolMs
      circuits.set(id, circuit)
    },
    forget: id => {
      circuits.delete(id)
    },
  }
}
