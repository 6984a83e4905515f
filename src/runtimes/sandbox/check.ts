import type { Check, Readiness } from '../../ports.ts'
import type { CgroupFinding } from '../local/cgroup-root.ts'
import type { MachineLimits } from '../local/protocol.ts'
import type { Probe } from './probe.ts'
import type { UidRange } from './uids.ts'

export interface CheckOptions {
  readonly probe: Probe
  readonly cgroup: CgroupFinding
  readonly uids: UidRange | null
  readonly defaults: MachineLimits
  readonly signal: AbortSignal
}

/** What protects jobs here, what does not, and how to change it. */
export const checkSandbox = async (options: CheckOptions): Promise<Readiness> => {
  const checks: Check[] = [backendCheck(options.probe)]
  return { runtime: 'sandbox', ready: checks.every(check => check.status !== 'failed'), checks }
}

const backendCheck = (probe: Probe): Check =>
  probe.backend.type === 'bwrap'
    ? { name: 'bubblewrap', status: 'ok', message: `version ${probe.bwrapVersion}` }
    : {
        name: 'bubblewrap',
        status: 'failed',
        message: probe.bwrapProblem ?? '',
        fix: 'apt install bubblewrap',
      }
