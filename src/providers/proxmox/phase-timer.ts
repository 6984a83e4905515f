export type Phase = 'template' | 'clone' | 'configure' | 'start' | 'boot'

/** Measures the phases of provisioning. */
export const createPhaseTimer = (onPhase?: (phase: Phase) => void) => {
  const phases: Partial<Record<Phase, number>> = {}
  let current: Phase = 'template'
  return {
    /** Milliseconds of each phase so far. */
    phases,
    get current() {
      return current
    },
    async lap<T>(phase: Phase, work: () => Promise<T>): Promise<T> {
      const began = performance.now()
      current = phase
      onPhase?.(phase)
      try {
        return await work()
      } finally {
        phases[phase] = Math.round(performance.now() - began)
      }
    },
  }
}
