import * as fs from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHarness, type Harness } from '../../support/providers.ts'
import { leftovers, SANDBOXES } from '../../support/sandboxes.ts'
import { exitOf, processesWith } from './provider-contract.ts'

const MIB = 2 ** 20
const LIMITS = { memory: 128 * MIB, disk: 64 * MIB, processes: 64, cpu: 1 }

for (const { name, subject, skip } of SANDBOXES)
  describe.skipIf(skip !== undefined)(`what a hostile job can do to the computer (${name})`, () => {
    let harness: Harness
    beforeAll(async () => {
      harness = await createHarness({ ...subject, options: { ...subject.options, defaults: LIMITS } })
    })
    afterAll(() => harness.dispose())

    const attack = async (task: string, timeout = 20) => {
      const { outcome, sink } = await harness.run({ task, timeout })
      return { ...exitOf(outcome), text: sink.text() }
    }

    it('a fork bomb hits the limit of processes', async () => {
      const task = 'bomb() { bomb | bomb & bomb | bomb; }; bomb 2>&1 | head -c 2000; sleep 1; (bomb) ; exit 1'
      const exit = await attack(task, 3)
      expect(exit.limitsHit.join()).toContain('processes')
      expect(exit.code === 0 && exit.stopped === null).toBe(false)
    })

    it('forks are refused at the limit, not before', async () => {
      const exit = await attack(
        `python3 -c "
import os,time
n=0
try:
  while n<5000:
    if os.fork()==0: time.sleep(30); os._exit(0)
    n+=1
except OSError as e: print('refused at', n, e); raise SystemExit(3)
"`,
      )
      expect(exit.code).toBe(3)
      const refused = Number(/refused at (\d+)/.exec(exit.text)?.[1])
      expect(refused).toBeGreaterThan(LIMITS.processes - 16)
      expect(refused).toBeLessThan(LIMITS.processes)
      expect(exit.limitsHit.join()).toContain('processes')
    })

    it('allocating 10 GB hits the memory limit', async () => {
      const exit = await attack('python3 -c "x=bytearray(); [x.extend(bytes(50<<20)) for _ in range(200)]"')
      expect(exit.code).not.toBe(0)
      expect(exit.limitsHit.join()).toContain('memory')
    })

    it('memory of many processes and shared memory count together', async () => {
      const exit = await attack(
        `python3 -c "
import mmap,os,time
for i in range(12):
  if os.fork()==0:
    m=mmap.mmap(-1, 40<<20, mmap.MAP_SHARED|mmap.MAP_ANONYMOUS)
    for at in range(0, 40<<20, 4096): m[at]=1
    time.sleep(20); os._exit(0)
time.sleep(15)
raise SystemExit(5)
"`,
      )
      expect(exit.code).not.toBe(0)
      expect(exit.limitsHit.join()).toContain('memory')
    })

    it('writing 100 GB hits the disk limit in every directory', async () => {
      for (const place of ['/work', '/tmp', '/home/job', '/dev/shm']) {
        const exit = await attack(`dd if=/dev/zero of=${place}/big bs=1M count=100000`)
        expect(exit.code, place).toBe(1)
        expect(exit.limitsHit.join(), place).toContain('disk')
      }
    })

    it('nothing else can be written to', async () => {
      const exit = await attack(
        'for d in / /etc /usr /run /dev /home /proc/sys/kernel /var /root /mnt; do (: >$d/x) 2>/dev/null && echo "WROTE $d"; done; true',
      )
      expect(exit.text).toBe('')
    })

    it('1 GB of output costs neither memory nor disk', async () => {
      const before = process.memoryUsage().rss
      const launched = await harness.launch({
        task: 'yes "a line of output that is repeated" | head -c 1073741824',
        timeout: 60,
      })
      let most = 0
      let spool = 0
      const watch = setInterval(() => {
        most = Math.max(most, process.memoryUsage().rss)
        spool = Math.max(spool, diskOf(harness.stateDir))
      }, 20)
      // A sink that only counts, as the store does.
      launched.sink.chunks.push = () => 0
      launched.sink.batches.push = () => 0
      const exit = exitOf(await launched.outcome)
      clearInterval(watch)
      await harness.provider.destroy(launched.machine, AbortSignal.timeout(30_000))
      expect(exit.code).toBe(0)
      // Flat is what matters here, in a process full of other things; the daemon's own figure is in the benchmarks.
      expect(most - before).toBeLessThan(128 * MIB)
      expect(spool).toBeLessThan(4 * MIB)
    })

    it('a process that ignores SIGTERM and its daemonised grandchild are killed with the job', async () => {
      const mark = `mark-${Math.random().toString(36).slice(2)}`
      const task = `trap "" TERM HUP INT; (setsid bash -c 'trap "" TERM HUP; while :; do sleep 1; done; : ${mark}' >/dev/null 2>&1 &); while :; do sleep 1; done`
      const exit = await attack(task, 1)
      expect(exit).toMatchObject({ stopped: 'timeout', limitsHit: [expect.stringContaining('time')] })
      expect(processesWith(mark)).toEqual([])
    })

    // With a daemon of root, the pipes belong to root and a job cannot change them: run this as an ordinary user, too.
    it('a job cannot affect what the next job uses', async () => {
      const spoil = [
        'exec 2>&1; setsid sleep 300 & setsid cat </proc/self/fd/1 >/dev/null & ',
        'chmod 0 /proc/self/fd/* /proc/1/fd/* /proc/$PPID/fd/* /work /tmp /home/job /dev/shm /dev/null /run; ',
        'for f in /proc/self/fd/1 /proc/$PPID/fd/3 /usr /etc/passwd; do setfattr -n user.x -v y $f; done; ',
        'mkdir -p /tmp/left /dev/shm/left; exit 0',
      ].join('\n')
      for (let time = 0; time < 3; time++) {
        expect((await attack(spoil)).code).toBe(0)
        const next = await attack(
          'echo out; echo err >&2; echo again >/dev/stdout; echo both >/dev/stderr; ls -A /work /tmp /dev/shm; cat /dev/null; ls -A $HOME',
        )
        expect(next).toMatchObject({ code: 0 })
        expect(next.text.split('\n').sort()).toEqual(
          ['', '', '', '/dev/shm:', '/tmp:', '/work:', 'again', 'both', 'err', 'out'].sort(),
        )
      }
    })

    it('leaves no process, mount or cgroup behind', () => {
      expect(leftovers(harness)).toEqual([])
    })
  })

const diskOf = (dir: string): number => {
  const { readdirSync, statSync } = fs
  let bytes = 0
  for (const entry of readdirSync(dir, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue
    bytes += statSync(`${entry.parentPath}/${entry.name}`, { throwIfNoEntry: false })?.size ?? 0
  }
  return bytes
}
