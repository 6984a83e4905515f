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
  /** Whether somebody is on trial now. */
  isTrying(id: string): boolean
  /** The trial is over without a verdict: the next one may try. */
  leave(id: string): void
  succeeded(id: string): void
  /** It answers: what was held against its connection is forgotten, not what is wrong with itself. */
  answered(id: string): void
  failed(id: string, reason: string, how?: Failure): void
  forget(id: string): void
}

export interface Failure {
  /** When what failed was begun. All that was under way at one failure is that same failure. */
  begun?: number
  /** The way to the node, or the node itself. */
  cause?: 'connection' | 'node'
}

interface Circuit {
  failures: number
  reason: string
  openUntil: number
  coolMs: number
  trial: boolean
  countedAt: number
  cause: 'connection' | 'node'
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
    isTrying: id => circuits.get(id)?.trial === true,
    leave: id => {
      const circuit = circuits.get(id)
      if (circuit) circuit.trial = false
    },
    succeeded: id => {
      circuits.delete(id)
    },
    answered: id => {
      if (circuits.get(id)?.cause === 'connection') circuits.delete(id)
    },
    failed: (id, reason, { begun = now(), cause = 'connection' } = {}) => {
      const circuit = circuits.get(id) ?? {
        ...{ failures: 0, reason, openUntil: 0, coolMs, trial: false, cause },
        countedAt: Number.NEGATIVE_INFINITY,
      }
      if (begun < circuit.countedAt) return
      const again = isOpen(circuit)
      circuit.failures++
      circuit.countedAt = now()
      if (cause === 'node') circuit.cause = cause
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
