import { describe, expect, it } from 'vitest'
import { limitsHit } from '../../../src/providers/local/limits-hit.ts'

const MIB = 2 ** 20
const LIMITS = { memory: 512 * MIB, disk: 64 * MIB, cpu: 1, processes: 64 }

describe('limitsHit', () => {
  const evidence = {
    limits: LIMITS,
    timeoutSeconds: 5,
    stopped: null,
    oomKills: 0,
    refusedForks: 0,
    disk: null,
    printedErrors: new Set<never>(),
  }

  it('names each limit that was hit, and nothing else', () => {
    expect(limitsHit(evidence)).toEqual([])
    expect(limitsHit({ ...evidence, stopped: 'timeout' })).toEqual(['time: it ran longer than 5 s'])
    const disk = { bytes: 64 * MIB, full: true, outOfFiles: false }
    expect(limitsHit({ ...evidence, oomKills: 1, refusedForks: 2, disk })).toEqual([
      expect.stringMatching(/^memory: .*512\.0 MB/),
      'processes: it wanted more than 64 at once',
      'disk: it wrote more than 64.0 MB',
    ])
    expect(limitsHit({ ...evidence, disk: { bytes: 0, full: false, outOfFiles: true } })).toEqual([
      'disk: it made more files than fit into 64.0 MB',
    ])
  })
})
