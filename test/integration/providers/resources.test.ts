import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHarness, type Harness, type ProviderSubject } from '../../support/providers.ts'
import { SANDBOXES } from '../../support/sandboxes.ts'
import { exitOf } from './provider-contract.ts'

const MIB = 2 ** 20

/** Holds 80 MiB until it has used two seconds of CPU time, in a child that it waits for. */
const WORK = `sh -c 'python3 -c "
import time
held = bytearray(b\\"x\\") * (80 << 20)
while time.process_time() < 2: pass
"; exit 0'`

const HOST: ProviderSubject = {
  module: 'providers/host/host-provider.js',
  factory: 'createHostProvider',
  options: { graceSeconds: 1, access: { allowed: true } },
}

for (const { name, subject, skip } of [...SANDBOXES, { name: 'host', subject: HOST, skip: undefined }])
  describe.skipIf(skip !== undefined)(`the resources that a job uses (${name})`, () => {
    let harness: Harness
    beforeAll(async () => {
      harness = await createHarness(subject)
    })
    afterAll(() => harness.dispose())

    it('are measured over its time', async () => {
      const { outcome } = await harness.run({ task: WORK, timeout: 120 })
      const exit = exitOf(outcome)
      expect(exit.code).toBe(0)
      const samples = exit.resources ?? []
      expect(samples.length).toBeGreaterThan(1)
      expect(samples.length).toBeLessThanOrEqual(60)
      // Without a cgroup, what a process used after the last sample before its end is not seen.
      expect(samples.at(-1)!.cpuMs).toBeGreaterThanOrEqual(1000)
      expect(samples.at(-1)!.cpuMs).toBeLessThan(60_000)
      expect(Math.max(...samples.map(({ memory }) => memory))).toBeGreaterThan(80 * MIB)
    })

    it('are not known of a job that ends at once', async () => {
      const { outcome } = await harness.run({ task: 'true' })
      // On a busy computer the job may take long enough for a sample, which is then one of its time.
      for (const { at } of exitOf(outcome).resources ?? []) expect(at).toBeGreaterThanOrEqual(200)
    })

    it('do not include files that it writes', async () => {
      const { outcome } = await harness.run({ task: 'head -c 60M /dev/zero >file; exec sleep 1' })
      const most = Math.max(...(exitOf(outcome).resources ?? []).map(({ memory }) => memory))
      expect(most).toBeLessThan(50 * MIB)
    })
  })
