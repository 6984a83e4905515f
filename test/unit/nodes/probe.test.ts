import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { AppError } from '../../../src/jobs/errors.ts'
import { parseNode } from '../../../src/nodes/inventory.ts'
import { measureLocal } from '../../../src/nodes/probe/local-load.ts'
import { overloadReason } from '../../../src/nodes/probe/node-health.ts'
import { createNodeMonitor } from '../../../src/nodes/probe/node-monitor.ts'
import { probeNode } from '../../../src/nodes/probe/probe-node.ts'
import { probeProgram } from '../../../src/nodes/probe/probe-program.ts'
import { type ProbeReport, parseReport } from '../../../src/nodes/probe/probe-report.ts'
import type { Ssh } from '../../../src/nodes/ssh/ssh-session.ts'
import { has } from '../../support/has.ts'

const MAC = `os Darwin
arch arm64
cores 10
load 2.31
memory 33554432 8388608
cpu 183
disk 971350180 485675090
uid 501
host studio.local
tools awk bash curl git
jobs 0
end
`

it.skipIf(!has('shellcheck')).each(['probe/probe.sh', 'sync/delete-old-trees.sh'])(
  'shellcheck accepts %s (skipped where it is missing)',
  name => {
    const file = fileURLToPath(new URL(`../../../src/nodes/${name}`, import.meta.url))
    expect(spawnSync('shellcheck', ['--shell=sh', file], { encoding: 'utf8' }).stdout).toBe('')
  },
)

describe('a probe report', () => {
  it('is parsed and normalized', () => {
    expect(parseReport(MAC)).toEqual({
      os: 'macos',
      arch: 'arm64',
      hostName: 'studio.local',
      cores: 10,
      load: 2.31,
      cpu: 18.3,
      memory: 75,
      disk: 50,
      memoryTotalMb: 32768,
      diskFreeMb: 474292,
      root: false,
      tools: ['awk', 'bash', 'curl', 'git'],
      isolates: false,
      jobs: 0,
    })
  })

  it.each([
    ['cut off', MAC.replace('end\n', '')],
    ['without memory', MAC.replace(/^memory.*$/m, '')],
    ['with empty memory', MAC.replace(/^memory.*$/m, 'memory 0 0')],
    ['with words for numbers', MAC.replace('load 2.31', 'load many')],
    ['with nothing for a number', MAC.replace('cores 10', 'cores')],
    ['with an impossible cpu', MAC.replace('cpu 183', 'cpu 99999')],
    ['empty', ''],
  ])('is refused when it is %s', (_, text) => expect(() => parseReport(text)).toThrow())

  it.skipIf(process.platform === 'win32')('comes from a program that runs on this very system', () => {
    const report = parseReport(execFileSync('sh', { input: probeProgram(), encoding: 'utf8' }))
    expect(report.cores).toBeGreaterThan(0)
    expect(report.memoryTotalMb).toBeGreaterThan(16)
    expect(report.cpu).toBeLessThanOrEqual(100)
    expect(report.tools).toContain('awk')
    expect(['linux', 'macos', 'freebsd']).toContain(report.os)
  })
})

describe.skipIf(process.platform === 'win32')('the commands that a probe counts', () => {
  it('are those with a live supervisor', () => {
    const home = mkdtempSync(join(tmpdir(), 'deputy-probe-'))
    const put = (id: string, exit: string, supervisor: string | undefined): void => {
      const directory = join(home, '.cache/deputy/owner/jobs', id)
      mkdirSync(directory, { recursive: true })
      writeFileSync(join(directory, 'exit'), exit)
      if (supervisor !== undefined) writeFileSync(join(directory, 'supervisor'), supervisor)
    }
    put('runs', '', `${process.pid} 1 -\n`)
    put('lost', '', '4194999 1 -\n')
    put('empty', '', '')
    put('cut', '', undefined)
    put('done', '0\n', `${process.pid} 1 -\n`)
    const env = { ...process.env, HOME: home }
    const report = parseReport(execFileSync('sh', { input: probeProgram(), encoding: 'utf8', env }))
    rmSync(home, { recursive: true })
    expect(report.jobs).toBe(1)
  })
})

describe('probing a node', () => {
  /** How long the probe program takes on the node: far longer than a busy computer delays a line. */
  const PROGRAM_MS = 1500

  /** A node with some latency that takes longer to run the program. */
  const far = (answer: string, wordMs: number): Ssh => ({
    run: async ({ onStdout, input }) => {
      onStdout?.(Buffer.from('welcome\nhello\n'))
      for await (const _ of input!) break
      await sleep(wordMs)
      onStdout?.(Buffer.from('again\n'))
      await sleep(PROGRAM_MS)
      onStdout?.(Buffer.from(answer))
      return { code: 0, stdout: Buffer.alloc(0), stderr: '', ms: 0, connectMs: 0 }
    },
    open: async () => Promise.reject(new Error('not in this test')),
    reset: () => undefined,
    bootId: () => undefined,
    close: () => undefined,
  })
  const target = { id: 'n1', host: 'n1.example' }

  it('measures the round trip of one line, not the probe program', async () => {
    const { latencyMs, report } = await probeNode(far(MAC, 40), target, new AbortController().signal)
    expect(report.os).toBe('macos')
    expect(latencyMs).toBeGreaterThanOrEqual(39)
    expect(latencyMs).toBeLessThan(PROGRAM_MS)
  })

  it('names the node that sent an invalid answer', async () => {
    const asked = probeNode(far('bye\n', 1), target, new AbortController().signal)
    await expect(asked).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('node n1'),
    })
  })
})

/** Stand-ins for the tools of macOS; they come first in PATH. */
const MAC_TOOLS = {
  uname: 'case $1 in -s) echo Darwin ;; -m) echo arm64 ;; -n) echo Anns-Mac-Studio.local ;; esac',
  sysctl: `case $2 in
hw.ncpu) echo 10 ;;
hw.memsize) echo 34359738368 ;;
vm.loadavg) echo '{ 2.61 2.37 2.26 }' ;;
*) echo "sysctl: unknown oid '$2'" >&2; exit 1 ;;
esac`,
  vm_stat: `cat <<'EOF'
Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                               65536.
Pages active:                            508461.
Pages inactive:                          196608.
Pages speculative:                       131072.
Pages throttled:                              0.
Pages wired down:                        142384.
Pages purgeable:                         131072.
"Translation faults":                1163452810.
Pages copy-on-write:                   48231754.
Swapins:                                      0.
EOF`,
  ps: `printf '  %s\\n' 95.5 0.0 104.5 0.0`,
  df: `cat <<'EOF'
Filesystem   1024-blocks      Used Available Capacity  Mounted on
/dev/disk3s5   971350180 485675090 485675090      50%  /System/Volumes/Data
EOF`,
  id: 'echo 501',
  // macOS does not have it, so the program must not need it.
  getconf: 'exit 1',
}

const SHELLS = ['sh', 'bash', 'zsh', 'busybox'].filter(
  shell => spawnSync(shell, ['--help']).error === undefined,
)

describe.skipIf(process.platform === 'win32').each(SHELLS)('the probe on macOS, in %s', shell => {
  it('reports the system and load of a Mac', () => {
    const directory = mkdtempSync(join(tmpdir(), 'deputy-mac-'))
    for (const [name, body] of Object.entries(MAC_TOOLS))
      writeFileSync(join(directory, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 })
    // Functions, because a busybox that is built so prefers its own tools to those in PATH.
    const tools = Object.keys(MAC_TOOLS).map(name => `${name}() { '${join(directory, name)}' "$@"; }\n`)
    const program = tools.join('') + probeProgram().replaceAll('/proc/', '/nowhere/')
    const argv = shell === 'busybox' ? ['sh'] : shell === 'zsh' ? ['--emulate', 'sh'] : []
    const output = execFileSync(shell, argv, {
      input: program,
      encoding: 'utf8',
      env: { HOME: directory, PATH: `${directory}:${process.env.PATH}` },
    })
    rmSync(directory, { recursive: true })
    expect(parseReport(output)).toMatchObject({
      os: 'macos',
      arch: 'arm64',
      hostName: 'Anns-Mac-Studio.local',
      cores: 10,
      load: 2.61,
      cpu: 20,
      memory: 75,
      memoryTotalMb: 32768,
      disk: 50,
      root: false,
      jobs: 0,
    })
  })
})

describe('this computer', () => {
  it('is measured in percent', async () => {
    const load = await measureLocal(new AbortController().signal)
    for (const value of [load.cpu, load.memory, load.disk]) {
      expect(value).toBeGreaterThanOrEqual(0)
      expect(value).toBeLessThanOrEqual(100)
    }
  })

  it('is overloaded above any threshold', () => {
    const load = { cpu: 10, memory: 10, load: 3, cores: 4 }
    expect(overloadReason(load, { cpu: 40, memory: 80 })).toBeUndefined()
    expect(overloadReason({ ...load, cpu: 41 }, { cpu: 40, memory: 80 })).toBe('cpu 41 % is over 40 %')
    expect(overloadReason(load, { cpu: 40, memory: 80, load: 2 })).toBe('load 3 is over 2')
    expect(overloadReason({ ...load, load: 4.5 }, { cpu: 40, memory: 80 })).toBe('load 4.5 is over 4')
    expect(overloadReason({ ...load, memory: 81 }, { cpu: 40, memory: 80 })).toBe('memory 81 % is over 80 %')
  })
})

describe('the node monitor', () => {
  const report: ProbeReport = parseReport(MAC)
  const node = (id: string) => parseNode({ id, host: id })
  const at = { time: 1_000_000 }
  const monitor = (probe: Parameters<typeof createNodeMonitor>[0]['probe'], more = {}) =>
    createNodeMonitor({
      probe,
      thresholds: { cpu: 40, memory: 80 },
      timeoutMs: 200,
      now: () => at.time,
      ...more,
    })

  it('probes all nodes in parallel within the timeout', async () => {
    const watch = monitor(async ({ id }) => {
      if (id === 'hang') await new Promise(() => undefined)
      if (id === 'down') throw new AppError('unavailable', 'no route to host')
      return { report, latencyMs: 4 }
    })
    const started = performance.now()
    const nodes = ['a', 'hang', 'down', ...Array.from({ length: 40 }, (_, i) => `n${i}`)].map(node)
    const all = await watch.check(nodes)
    expect(performance.now() - started).toBeLessThan(10_000)
    expect(all.find(({ id }) => id === 'a')).toMatchObject({
      health: 'healthy',
      latencyMs: 4,
      reason: undefined,
    })
    expect(all.find(({ id }) => id === 'hang')).toMatchObject({
      health: 'unreachable',
      reason: expect.stringContaining('0.2 s'),
    })
    expect(all.find(({ id }) => id === 'down')).toMatchObject({
      health: 'unreachable',
      reason: 'no route to host',
    })
  })

  it('does not count the wait for a slot against a node', async () => {
    const watch = monitor(
      ({ id }) => (id === 'n19' ? Promise.resolve({ report, latencyMs: 1 }) : new Promise(() => undefined)),
      { parallel: 2 },
    )
    const all = await watch.check(Array.from({ length: 20 }, (_, i) => node(`n${i}`)))
    expect(all.map(({ health }) => health)).toEqual([...Array(19).fill('unreachable'), 'healthy'])
  })

  it('keeps the timeout when more nodes hang than there are slots', async () => {
    const watch = monitor(() => new Promise(() => undefined), { parallel: 2 })
    const started = performance.now()
    // One after the other they would take 20 seconds.
    const all = await watch.check(Array.from({ length: 200 }, (_, i) => node(`h${i}`)))
    expect(performance.now() - started).toBeLessThan(10_000)
    expect(all.every(({ health }) => health === 'unreachable')).toBe(true)
  })

  it('shares one probe between callers and caches the status', async () => {
    let asked = 0
    const watch = monitor(async () => {
      asked++
      return { report, latencyMs: 1 }
    })
    await Promise.all([watch.check([node('a')]), watch.check([node('a')])])
    await watch.check([node('a')])
    expect(asked).toBe(1)
    at.time += 6000
    await watch.check([node('a')])
    expect(asked).toBe(2)
  })

  it('peek returns the last status and refreshes it in the background', async () => {
    let answer: (() => void) | undefined
    const watch = monitor(
      () =>
        new Promise(resolve => {
          answer = () => resolve({ report, latencyMs: 1 })
        }),
    )
    expect(watch.peek(node('a'))).toBeUndefined()
    await expect.poll(() => answer).toBeDefined()
    expect(watch.peek(node('a'))).toBeUndefined()
    answer?.()
    await expect.poll(() => watch.peek(node('a'))?.health).toBe('healthy')
  })

  it('records when the health of a node changed', async () => {
    let fails = false
    const watch = monitor(async () => {
      if (fails) throw new AppError('unavailable', 'gone')
      return { report, latencyMs: 1 }
    })
    const [first] = await watch.check([node('a')])
    at.time += 10_000
    const [second] = await watch.check([node('a')])
    expect(second?.since).toBe(first?.since)
    fails = true
    at.time += 10_000
    const [third] = await watch.check([node('a')], { force: true })
    expect(third).toMatchObject({ health: 'unreachable', since: at.time })
    expect(third?.report).toEqual(report)
  })

  it('calls a busy node overloaded and says why', async () => {
    const watch = monitor(async () => ({ report: { ...report, cpu: 97 }, latencyMs: 1 }))
    expect((await watch.check([node('a')]))[0]).toMatchObject({
      health: 'overloaded',
      reason: 'cpu 97 % is over 40 %',
    })
  })

  it('reports an invalid answer', async () => {
    const watch = monitor(async () => ({ report: parseReport('hello'), latencyMs: 1 }))
    expect((await watch.check([node('a')]))[0]?.reason).toContain('sent an invalid answer')
  })
})
