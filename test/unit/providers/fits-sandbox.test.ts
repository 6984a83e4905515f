import { describe, expect, it } from 'vitest'
import { parseManifest } from '../../../src/jobs/manifest.ts'
import { fitsSandbox } from '../../../src/providers/sandbox/fits-sandbox.ts'

const MIB = 2 ** 20
const LIMITS = { memory: 512 * MIB, disk: 64 * MIB, cpu: 1, processes: 64 }

describe('fitsSandbox', () => {
  const fits = (input: Record<string, unknown>) => fitsSandbox(parseManifest({ task: 'x', ...input }), LIMITS)

  it('gives the reason for a refusal', () => {
    expect(fits({})).toEqual({ ok: true })
    for (const [input, reason] of [
      [{ vmTemplate: 'debian' }, 'virtual machine'],
      [{ requires: { os: 'windows' } }, 'windows'],
      [{ requires: { arch: 's390x' } }, 's390x'],
      [{ requires: { capabilities: ['gpu'] } }, 'gpu'],
      [{ requires: { node: 'elsewhere' } }, 'elsewhere'],
      [{ image: 'node:22' }, "'node:22' needs a container"],
      [{ gpus: 'all' }, "'gpus' needs a container"],
      [{ pull: 'always' }, "'pull' needs a container"],
      [{ resources: { memory: '900T' } }, 'memory'],
      [{ resources: { cpu: 32 } }, 'processors'],
    ] as const)
      expect(fits(input)).toEqual({ ok: false, reason: expect.stringContaining(reason) })
  })
})
