/** Faults that end running jobs. A job may be lost only while its provider was damaged, and only so many. */
export interface Damage {
  /** Call the answer when the provider works again. */
  begin(provider: string, losses: number): () => void
  during(provider: string, from: number, to: number): boolean
  /** How many jobs all faults together may have ended. */
  losses(provider: string): number
}

interface Span {
  readonly provider: string
  readonly losses: number
  readonly from: number
  to: number
}

export const createDamage = (): Damage => {
  const spans: Span[] = []
  return {
    begin: (provider, losses) => {
      const span: Span = { provider, losses, from: performance.now(), to: Number.POSITIVE_INFINITY }
      spans.push(span)
      return () => {
        span.to = performance.now()
      }
    },
    during: (provider, from, to) =>
      spans.some(span => span.provider === provider && span.from <= to && from <= span.to),
    losses: provider =>
      spans.filter(span => span.provider === provider).reduce((sum, span) => sum + span.losses, 0),
  }
}
