interface CircuitBreakerOptions {
  /** Consecutive failures that open the circuit. */
  threshold?: number
  /** How long the circuit stays open the first time. The time doubles with each failed trial. */
  openMs?: number
  maxOpenMs?: number
  now?: () => number
}

export interface CircuitBreakers {
  /** Says why no command may be sent to the node now; undefined when one may. Does not start a trial. */
  blockedReason(id: string): string | undefined
  /** Takes the single trial of a half-open circuit. Returns true when the caller may use the node. */
  startTrial(id: string): boolean
  inTrial(id: string): boolean
  /** Ends the trial without a result, so that another command may take it. */
  endTrial(id: string): void
  recordSuccess(id: string): void
  /** The node answers a probe: clears failures of the connection, but not failures of the node itself. */
  recordReachable(id: string): void
  recordFailure(id: string, reason: string, context?: FailureContext): void
  forget(id: string): void
}

interface FailureContext {
  /** When the failed command started. Commands that were running during a counted failure count once. */
  startedAt?: number
  cause?: 'connection' | 'node'
}

interface Circuit {
  failures: number
  reason: string
  openUntil: number
  openMs: number
  trial: boolean
  countedAt: number
  cause: 'connection' | 'node'
}

/** Keeps one circuit for each node: closed, open after consecutive failures, then half-open for one trial at a time. */
export const createCircuitBreakers = (options: CircuitBreakerOptions = {}): CircuitBreakers => {
  const { threshold = 3, openMs = 5_000, maxOpenMs = 300_000, now = Date.now } = options
  const circuits = new Map<string, Circuit>()
  const isOpen = (circuit: Circuit): boolean => circuit.failures >= threshold

  return {
    blockedReason: id => {
      const circuit = circuits.get(id)
      if (!circuit || !isOpen(circuit)) return undefined
      const wait = circuit.openUntil - now()
      if (wait > 0)
        return `failed ${circuit.failures} times in a row (${circuit.reason}); next try in ${Math.ceil(wait / 1000)} s`
      return circuit.trial
        ? `is being tried after ${circuit.failures} failures (${circuit.reason})`
        : undefined
    },
    startTrial: id => {
      const circuit = circuits.get(id)
      if (!circuit || !isOpen(circuit)) return true
      if (circuit.trial || circuit.openUntil > now()) return false
      circuit.trial = true
      return true
    },
    inTrial: id => circuits.get(id)?.trial === true,
    endTrial: id => {
      const circuit = circuits.get(id)
      if (circuit) circuit.trial = false
    },
    recordSuccess: id => {
      circuits.delete(id)
    },
    recordReachable: id => {
      if (circuits.get(id)?.cause === 'connection') circuits.delete(id)
    },
    recordFailure: (id, reason, { startedAt = now(), cause = 'connection' } = {}) => {
      const circuit = circuits.get(id) ?? {
        ...{ failures: 0, reason, openUntil: 0, openMs, trial: false, cause },
        countedAt: Number.NEGATIVE_INFINITY,
      }
      if (startedAt < circuit.countedAt) return
      const wasOpen = isOpen(circuit)
      circuit.failures++
      circuit.countedAt = now()
      if (cause === 'node') circuit.cause = cause
      circuit.reason = reason
      circuit.trial = false
      if (wasOpen) circuit.openMs = Math.min(circuit.openMs * 2, maxOpenMs)
      circuit.openUntil = now() + circuit.openMs
      circuits.set(id, circuit)
    },
    forget: id => {
      circuits.delete(id)
    },
  }
}
