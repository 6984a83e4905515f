import { formatSize } from '../../jobs/sizes.ts'
import type { StopReason } from '../../ports.ts'
import type { MachineLimits } from './protocol.ts'

export interface LimitSigns {
  readonly limits: MachineLimits
  readonly timeoutSeconds: number
  readonly stopped: StopReason['kind'] | null
  readonly failed: boolean
  readonly oomKills: number
  readonly refusedForks: number
  readonly fullDisks: readonly string[]
  readonly sawNoSpace: boolean
}

/** Which limits ended or hindered a job, in words. */
export const limitsHit = (signs: LimitSigns): string[] => {
  const { limits } = signs
  const hit: string[] = []
  if (signs.stopped === 'timeout') hit.push(`time: it ran longer than ${signs.timeoutSeconds} s`)
  if (signs.oomKills > 0)
    hit.push(
      `memory: it used more than ${formatSize(limits.memory)} (and ${formatSize(limits.disk)} of disk in memory)`,
    )
  if (signs.refusedForks > 0) hit.push(`processes: it wanted more than ${limits.processes} at once`)
  const full = signs.fullDisks.join(', ')
  if (full !== '') hit.push(`disk: ${full} is full (${formatSize(limits.disk)})`)
  else if (signs.failed && signs.sawNoSpace) hit.push(`disk: no space was left (${formatSize(limits.disk)})`)
  return hit
}

/** A line of `df -kP`: the mount point when it has no room left. */
export const parseDisk = (line: string): string[] => {
  const match = /^\S+\s+\d+\s+\d+\s+(\d+)\s+\d+%\s+(\/\S*)$/.exec(line)
  return match !== null && Number(match[1]) < 4 ? [match[2]!] : []
}
