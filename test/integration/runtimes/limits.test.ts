import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { trySandbox } from '../../../src/runtimes/sandbox/trial.ts'
import { uidRange } from '../../../src/runtimes/sandbox/uids.ts'
import { createHarness, type Harness } from '../../support/runtimes.ts'
import { SANDBOXES } from '../../support/sandboxes.ts'
import { exitOf } from './contract.ts'

const MIB = 2 ** 20
const LIMITS = { memory: 128 * MIB, disk: 10 * MIB, processes: 64, cpu: 2 }
const PLACES = '/work /tmp /home/job /dev/shm'

for (const { name, subject, skip } of SANDBOXES)
  describe.skipIf(skip !== undefined)(`the limits of a sandbox (${name})`, () => {
    let harness: Harness
    beforeAll(async () => {
      harness = await createHarness({ ...subject, options: { ...subject.options, defaults: LIMITS } })
    })
    afterAll(() => harness.dispose())

    const attack = async (task: string, resources: { memory?: string; disk?: string } = {}) => {
      const { outcome, sink } = await harness.run({ task, timeout: 40, resources })
      const exit = exitOf(outcome)
      return { ...exit, text: sink.text(), limits: exit.limitsHit.join() }
    }
    const python = (program: string, resources?: { memory?: string; disk?: string }) =>
      attack(`cat >/tmp/attack.py <<'EOF'\n${program}\nEOF\npython3 /tmp/attack.py`, resources)

    describe('of the disk', () => {
      it('counts all places together', async () => {
        const exit = await attack(
          `for d in ${PLACES}; do head -c 6M /dev/zero >$d/big || bad=1; done; cat ${PLACES.replaceAll(/(\S+)/g, '$1/big')} | wc -c; exit $bad`,
        )
        expect(exit).toMatchObject({ code: 1, limits: 'disk: it wrote more than 10.0 MB' })
        expect(Number(/^\d+$/m.exec(exit.text)?.[0])).toBeLessThanOrEqual(LIMITS.disk)
        expect(Number(/^\d+$/m.exec(exit.text)?.[0])).toBeGreaterThan(0.9 * LIMITS.disk)
      })

      it('counts files that were deleted while they are open', async () => {
        const exit = await python(`
import os
held = []
try:
  for n in range(1000):
    f = open('/tmp/x', 'wb'); os.unlink('/tmp/x'); held.append(f)
    f.write(bytes(1 << 20)); f.flush()
except OSError as e: print('refused at', n, e.strerror); raise SystemExit(3)
`)
        expect(exit).toMatchObject({ code: 3, limits: expect.stringContaining('disk') })
        expect(Number(/refused at (\d+)/.exec(exit.text)?.[1])).toBeLessThanOrEqual(10)
      })

      it('bounds the number of files, empty ones, links and directories included', async () => {
        const exit = await python(`
import os
def bomb(make):
  n = 0
  try:
    while n < 250000: make(n); n += 1
  except OSError: pass
  return n
total = 0
open('/tmp/target', 'w').close()
for place in '${PLACES}'.split():
  total += bomb(lambda n: open('%s/f%d' % (place, n), 'w').close())
  total += bomb(lambda n: os.mkdir('%s/d%d' % (place, n)))
  total += bomb(lambda n: os.symlink('x' * 60, '%s/s%d' % (place, n)))
total += bomb(lambda n: os.link('/tmp/target', '/tmp/l%d' % n))
print('made', total)
raise SystemExit(3)
`)
        expect(exit).toMatchObject({ code: 3, limits: 'disk: it made more files than fit into 10.0 MB' })
        const made = Number(/made (\d+)/.exec(exit.text)?.[1])
        expect(made).toBeGreaterThan(2000)
        expect(made).toBeLessThanOrEqual(LIMITS.disk / 4096)
      })

      it('is what the job asked for', async () => {
        const exit = await attack('head -c 30M /dev/zero >/tmp/big && wc -c </tmp/big', { disk: '40M' })
        expect(exit).toMatchObject({ code: 0, text: `${30 * MIB}\n`, limits: '' })
      })
    })
  })

describe('a sandbox where only bubblewrap may mount', () => {
  const bwrap = '/usr/bin/bwrap'
  it.skipIf(!existsSync(bwrap))('still starts, with a file system for each place', async () => {
    const backend = { type: 'bwrap', path: bwrap, disableUserns: false, oneDisk: false } as const
    const uid = uidRange('/')?.first ?? null
    const signal = AbortSignal.timeout(20_000)
    expect(await trySandbox(backend, { prefix: 'deputy-test-', uid, signal })).toBe(null)
  })
})
