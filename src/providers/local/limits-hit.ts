import { formatSize } from '../../jobs/sizes.ts'
import type { LimitErrorScanner, ScannedLimit } from '../../output/limit-error-scanner.ts'
import type { StopReason } from '../../ports.ts'
import type { MachineLimits } from '../../runner/shim-start.ts'
import type { DiskUse } from './disk-use.ts'

export interface LimitEvidence {
  readonly limits: MachineLimits
  readonly timeoutSeconds: number
  readonly stopped: StopReason['kind'] | null
  readonly oomKills: number
  readonly refusedForks: number
  readonly disk: DiskUse | null
  /** Limits named in error messages of a failed job; used where the kernel does not count violations. */
  readonly printedErrors: ReadonlySet<ScannedLimit>
}

/** Describes the limits that ended or hindered a job. */
export const limitsHit = (evidence: LimitEvidence): string[] => {
  const { limits } = evidence
  const hit: string[] = []
  if (evidence.stopped === 'timeout') hit.push(`time: it ran longer than ${evidence.timeoutSeconds} s`)
  if (evidence.oomKills > 0 || evidence.printedErrors.has('memory'))
    hit.push(`memory: it used more than ${formatSize(limits.memory)}`)
  if (evidence.refusedForks > 0 || evidence.printedErrors.has('processes'))
    hit.push(`processes: it wanted more than ${limits.processes} at once`)
  if (evidence.disk?.outOfFiles) hit.push(`disk: it made more files than fit into ${formatSize(limits.disk)}`)
  else if (evidence.disk?.full || evidence.printedErrors.has('disk'))
    hit.push(`disk: it wrote more than ${formatSize(limits.disk)}`)
  return hit
}

/** Ignores printed errors for limits whose violations the kernel counts. */
export const uncountedLimitErrors = (
  scanner: LimitErrorScanner,
  keeps: { memory: boolean; processes: boolean } | undefined,
): Set<ScannedLimit> =>
  new Set(
    (['disk', 'memory', 'processes'] as const).filter(
      limit => scanner.found(limit) && (limit === 'disk' || !keeps?.[limit]),
    ),
  )
