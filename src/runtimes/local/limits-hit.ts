import { formatSize } from '../../jobs/sizes.ts'
import type { StopReason } from '../../ports.ts'
import type { DiskUse } from './disk-use.ts'
import type { Symptom, Symptoms } from './limit-error-scanner.ts'
import type { MachineLimits } from './shim-protocol.ts'

export interface LimitSigns {
  readonly limits: MachineLimits
  readonly timeoutSeconds: number
  readonly stopped: StopReason['kind'] | null
  readonly oomKills: number
  readonly refusedForks: number
  readonly disk: DiskUse | null
  /** What a failing job printed, counted where the kernel does not count for us. */
  readonly symptoms: ReadonlySet<Symptom>
}

/** Which limits ended or hindered a job, in words. */
export const limitsHit = (signs: LimitSigns): string[] => {
  const { limits } = signs
  const hit: string[] = []
  if (signs.stopped === 'timeout') hit.push(`time: it ran longer than ${signs.timeoutSeconds} s`)
  if (signs.oomKills > 0 || signs.symptoms.has('memory'))
    hit.push(`memory: it used more than ${formatSize(limits.memory)}`)
  if (signs.refusedForks > 0 || signs.symptoms.has('processes'))
    hit.push(`processes: it wanted more than ${limits.processes} at once`)
  if (signs.disk?.outOfFiles) hit.push(`disk: it made more files than fit into ${formatSize(limits.disk)}`)
  else if (signs.disk?.full || signs.symptoms.has('disk'))
    hit.push(`disk: it wrote more than ${formatSize(limits.disk)}`)
  return hit
}

/** Where the kernel counts, only its word is taken. */
export const symptomsOf = (
  symptoms: Symptoms,
  keeps: { memory: boolean; processes: boolean } | undefined,
): Set<Symptom> =>
  new Set(
    (['disk', 'memory', 'processes'] as const).filter(
      symptom => symptoms.saw(symptom) && (symptom === 'disk' || !keeps?.[symptom]),
    ),
  )
