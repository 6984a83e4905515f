import type { ProbeReport } from './probe-report.ts'

export interface Thresholds {
  cpu: number
  load?: number | undefined
  memory: number
}

export type Health = 'healthy' | 'overloaded' | 'unreachable'

/** Why a machine counts as overloaded; undefined when it does not. */
export const overloadReason = (
  load: Pick<ProbeReport, 'cpu' | 'memory' | 'load' | 'cores'>,
  thresholds: Thresholds,
): string | undefined => {
  const limit = thresholds.load ?? load.cores
  if (load.cpu > thresholds.cpu) return `cpu ${load.cpu} % is over ${thresholds.cpu} %`
  if (load.load > limit) return `load ${load.load} is over ${limit}`
  if (load.memory > thresholds.memory) return `memory ${load.memory} % is over ${thresholds.memory} %`
  return undefined
}
