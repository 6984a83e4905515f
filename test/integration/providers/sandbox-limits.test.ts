import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findCgroupRoot } from '../../../src/providers/local/cgroup-root.ts'
import { uidRange } from '../../../src/providers/sandbox/sandbox-uids.ts'
import { trySandbox } from '../../../src/providers/sandbox/try-sandbox.ts'
import { createHarness, type Harness } from '../../support/providers.ts'
import { SANDBOXES } from '../../support/sandboxes.ts'
import { exitOf, processesWith, waitFor } from './provider-contract.ts'

const MIB = 2 ** 20
const LIMITS = { memory: 128 * MIB, disk: 10 * MIB, processes: 64, cpu: 2 }
const PLACES = '/work /tmp /home/job /dev/shm'

/** Makes the runner map and touch 300 MB, and never return to its work. */
const TAKE_RUNNER = `
import struct, sys
pid = sys.argv[1]
size = 300 << 20
code = (b'\\xb8\\x09\\0\\0\\0\\x31\\xff\\xbe' + struct.pack('<I', size) + b'\\xba\\x03\\0\\0\\0\\x41\\xba\\x22\\0\\0\\0'
  b'\\x49\\xc7\\xc0\\xff\\xff\\xff\\xff\\x45\\x31\\xc9\\x0f\\x05\\xb9' + struct.pack('<I', size // 4096)
  + b'\\xc6\\x00\\x01\\x48\\x05\\0\\x10\\0\\0\\xff\\xc9\\x75\\xf3\\xb8\\x22\\0\\0\\0\\x0f\\x05\\xeb\\xf7')
try:
  at = int(open('/proc/%s/syscall' % pid).read().split()[-1], 16)
  with open('/proc/%s/mem' % pid, 'r+b', 0) as memory:
    memory.seek(at)
    memory.write(code)
  print('taken', flush=True)
except OSError as e: print('refused', e, flush=True)
`

/** Which column of the table in docs/sandbox.md is tested here. An ordinary user rarely has cgroups. */
const cgroups = findCgroupRoot()
const kind = cgroups.root === null ? `no cgroups: ${cgroups.problem}` : `cgroup v${cgroups.root.version}`

for (const { name, subject, skip } of SANDBOXES)
  describe.skipIf(skip !== undefined)(
    `the limits of a sandbox (${name}${subject.options.cgroups === false ? '' : `, ${kind}`})`,
    () => {
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

      describe('of memory', () => {
        const SMALL = { memory: '64M', disk: '600M' }
        /** 100 MB are more than the limit, and less than what an rlimit refuses to one process without cgroups. */
        const HOLD = "print('holds', flush=True); time.sleep(30); print('survived')"

        const expectEnd = (exit: Awaited<ReturnType<typeof attack>>) => {
          expect(exit.text).not.toContain('survived')
          expect(exit.code).not.toBe(0)
          expect(exit.stopped).toBe(null)
        }

        it('does not depend on the disk limit', async () => {
          const exit = await python(`import time\nx = bytearray(100 << 20)\n${HOLD}`, SMALL)
          expectEnd(exit)
          expect(exit.limits).toBe('memory: it used more than 64.0 MB')
        })

        it('does not count files, and the job keeps its disk', async () => {
          const exit = await attack(
            'head -c 400M /dev/zero >/work/big; sleep 0.5; head -c 100M /dev/zero >/tmp/big; rm /work/big; sleep 0.3; cat /tmp/big | wc -c',
            SMALL,
          )
          expect(exit).toMatchObject({ code: 0, text: `${100 * MIB}\n`, limits: '' })
        })

        it('does not kill the runner, which collects the files', async () => {
          const task = `echo log >/work/log; python3 -c "import time; x = bytearray(100 << 20); time.sleep(30)"`
          const { outcome } = await harness.run({ task, timeout: 40, resources: SMALL, artifacts: ['log'] })
          expect(exitOf(outcome).artifacts.map(({ path }) => path)).toEqual(['log'])
        })

        it('counts memory files', async () => {
          const program = `
import os, time
f = os.memfd_create('x')
for n in range(200): os.write(f, bytes(1 << 20))
${HOLD}`
          expectEnd(await python(program, SMALL))
        })

        it('counts System V shared memory that no process has attached', async () => {
          const exit = await attack(
            `perl -e '$s = shmget(0, 200 << 20, 0600); defined $s or die "refused: $!\\n"; $| = 1;
            for $n (0..199) { shmwrite($s, "x" x (1 << 20), $n << 20, 1 << 20) or die } print "holds"; sleep 30; print "survived"'`,
            SMALL,
          )
          expectEnd(exit)
        })

        it('leaves small System V segments, which serve as locks', async () => {
          const exit = await attack(`perl -e 'defined shmget(0, 56, 0600) or die "refused: $!\\n"'`, SMALL)
          expect(exit).toMatchObject({ code: 0, text: '' })
        })

        it('counts a process whose first thread has ended', async () => {
          const exit = await python(
            `
import ctypes, os, threading, time
def hold():
  while open('/proc/self/stat').read().rsplit(')')[1].split()[0] != 'Z': time.sleep(0.01)
  x = bytearray(100 << 20)
  ${HOLD}
  os._exit(0)
threading.Thread(target=hold).start()
ctypes.CDLL(None).syscall(${process.arch === 'x64' ? 60 : 93}, 0)`,
            SMALL,
          )
          expectEnd(exit)
          expect(exit.limits).toContain('memory')
        })

        // The runner waits for the job in a system call. What it does after that is written by the job.
        it.skipIf(process.arch !== 'x64')('counts memory that a job allocates in its runner', async () => {
          const exit = await attack(
            `cat >/tmp/attack.py <<'EOF'\n${TAKE_RUNNER}\nEOF\nexec python3 /tmp/attack.py $PPID`,
            SMALL,
          )
          expect(exit.text).toMatch(/^(taken|refused)/)
          expect(exit.stopped).toBe(null)
          if (exit.text.startsWith('taken')) expect(exit.limits).toContain('memory')
        })

        it('counts what a job left running in a kept machine', async () => {
          const mark = `left-${Math.random().toString(36).slice(2)}`
          const task = `setsid python3 -c "
import sys, time
time.sleep(1); x = bytearray(100 << 20); time.sleep(60)" ${mark} >/dev/null 2>&1 &`
          const kept = await harness.launch({ task, lifecycle: 'persistent', resources: SMALL })
          expect(exitOf(await kept.outcome).code).toBe(0)
          await waitFor(() => processesWith(mark).length > 0, 'it has started')
          await waitFor(() => processesWith(mark).length === 0, 'it is ended')
          await harness.provider.destroy(kept.machine, AbortSignal.timeout(30_000))
        })
      })

      describe('of the disk', () => {
        it('counts all writable directories together', async () => {
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
    },
  )

describe('a sandbox where only bubblewrap may mount', () => {
  const bwrap = '/usr/bin/bwrap'
  it.skipIf(!existsSync(bwrap))('still starts, with a file system for each place', async () => {
    const backend = { type: 'bwrap', path: bwrap, disableUserns: false, oneDisk: false } as const
    const uid = uidRange('/')?.first ?? null
    const signal = AbortSignal.timeout(20_000)
    expect(await trySandbox(backend, { prefix: 'deputy-test-', uid, signal })).toBe(null)
  })
})
