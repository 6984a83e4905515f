import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findCgroupRoot, removeStaleCgroups } from '../../../src/providers/local/cgroup-root.ts'
import { createCgroup } from '../../../src/providers/local/cgroups.ts'

describe('finding the cgroup root', () => {
  let dir: string
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'deputy-cgroup-'))
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))

  /** A process whose cgroups are directories of ours. */
  const proc = (cgroup: string, mounts: string[]): string => {
    writeFileSync(join(dir, 'cgroup'), cgroup)
    writeFileSync(
      join(dir, 'mountinfo'),
      mounts.map((mount, index) => `${index} 1 0:${index} ${mount}\n`).join(''),
    )
    return dir
  }
  const make = (path: string, files: Record<string, string> = {}) => {
    mkdirSync(join(dir, path), { recursive: true })
    for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, path, name), text)
  }

  it('uses the hierarchy of each controller in version 1', () => {
    make('memory/a/b')
    make('cpu,cpuacct')
    const found = findCgroupRoot(
      proc('4:memory:/a/b\n3:cpu,cpuacct:/\n2:pids:/gone\n0::/\n', [
        `/ ${dir}/memory rw - cgroup cgroup rw,memory`,
        `/ ${dir}/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct`,
        `/ ${dir}/pids rw - cgroup cgroup rw,pids`,
      ]),
    )
    expect(found.root).toEqual({
      version: 1,
      memory: `${dir}/memory/a/b`,
      pids: null,
      cpu: `${dir}/cpu,cpuacct`,
    })
  })

  it('moves its processes to a child of a delegated v2 cgroup and enables controllers', () => {
    make('v2/unit', { 'cgroup.controllers': 'cpuset cpu memory pids\n', 'cgroup.procs': `${process.pid}\n` })
    const found = findCgroupRoot(proc('0::/unit\n', [`/ ${dir}/v2 rw - cgroup2 cgroup2 rw`]))
    expect(found.root).toEqual({ version: 2, path: `${dir}/v2/unit`, controllers: ['memory', 'pids', 'cpu'] })
    expect(readFileSync(`${dir}/v2/unit/supervisor/cgroup.procs`, 'utf8')).toBe(String(process.pid))
    expect(readFileSync(`${dir}/v2/unit/cgroup.subtree_control`, 'utf8')).toBe('+memory +pids +cpu')
  })

  it('finds the delegated cgroup after an earlier daemon moved its processes', () => {
    make('v2/unit', { 'cgroup.controllers': 'memory\n', 'cgroup.procs': '' })
    make('v2/unit/supervisor')
    const found = findCgroupRoot(proc('0::/unit/supervisor\n', [`/ ${dir}/v2 rw - cgroup2 cgroup2 rw`]))
    expect(found.root).toMatchObject({ path: `${dir}/v2/unit`, controllers: ['memory'] })
  })

  it('moves no process of another program', () => {
    make('v2/session', { 'cgroup.controllers': 'memory\n', 'cgroup.procs': '1\n' })
    make('v2/deputy.slice', { 'cgroup.controllers': 'memory pids\n', 'cgroup.procs': '' })
    const found = findCgroupRoot(proc('0::/session\n', [`/ ${dir}/v2 rw - cgroup2 cgroup2 rw`]))
    expect(existsSync(`${dir}/v2/session/supervisor`)).toBe(false)
    if (process.getuid?.() === 0) expect(found.root).toMatchObject({ path: `${dir}/v2/deputy.slice` })
    else expect(found.problem).toContain('shared')
  })

  it('says why there is none', () => {
    expect(findCgroupRoot(proc('0::/x\n', [])).problem).toContain('no cgroup file system')
    expect(findCgroupRoot(join(dir, 'nowhere')).problem).toContain('ENOENT')
  })

  it('works inside a container', () => {
    make('memory/job')
    const found = findCgroupRoot(
      proc('4:memory:/docker/abc/job\n', [`/docker/abc ${dir}/memory rw - cgroup cgroup rw,memory`]),
    )
    expect(found.root).toMatchObject({ memory: `${dir}/memory/job` })
  })

  it('writes limits of version 2 and reads its counters', () => {
    make('v2/unit/job')
    const group = createCgroup(
      { version: 2, path: `${dir}/v2/unit`, controllers: ['memory', 'pids', 'cpu'] },
      'job',
    )
    group.setLimits({ memory: 1000, processes: 7, cpu: 1.5 })
    const read = (name: string) => readFileSync(`${dir}/v2/unit/job/${name}`, 'utf8')
    expect([read('memory.max'), read('memory.swap.max'), read('pids.max'), read('cpu.max')]).toEqual([
      '1000',
      '0',
      '7',
      '150000 100000',
    ])
    writeFileSync(`${dir}/v2/unit/job/memory.events`, 'low 0\noom 3\noom_kill 2\n')
    writeFileSync(`${dir}/v2/unit/job/pids.events`, 'max 5\n')
    expect(group.events()).toEqual({ memory: 2, processes: 5 })
    writeFileSync(`${dir}/v2/unit/job/cgroup.procs`, '12\n34\n')
    expect(group.members()).toEqual([12, 34])
  })

  it('has no members without a controller, nor after it is removed', async () => {
    expect(createCgroup({ version: 1, memory: null, pids: null, cpu: null }, 'job').members()).toEqual([])
    make('pids', {})
    const group = createCgroup({ version: 1, memory: null, pids: `${dir}/pids`, cpu: null }, 'job')
    await group.remove()
    expect(group.members()).toEqual([])
  })
})

const V2 = ['/sys/fs/cgroup/unified', '/sys/fs/cgroup'].find(path =>
  existsSync(join(path, 'cgroup.controllers')),
)

describe.skipIf(V2 === undefined || process.getuid?.() !== 0)('a real cgroup of version 2', () => {
  it('kills its members and is removed; stale cgroups are removed with their shims', async () => {
    const root = { version: 2, path: V2!, controllers: [] } as const
    const prefix = `deputy-test${process.pid}-`
    const group = createCgroup(root, `${prefix}dead-0`)
    const living = createCgroup(root, `${prefix}live-0`)
    const child = spawn('sh', [
      '-c',
      `echo $$ >${group.joinFiles[0]}; echo in; trap "" TERM; sleep 60 & sleep 60`,
    ])
    await new Promise(resolve => child.stdout.once('data', resolve))
    const gone = new Promise(resolve => child.once('exit', (_code, signal) => resolve(signal)))
    await removeStaleCgroups(root, prefix, new Set(['live']))
    expect(await gone).toBe('SIGKILL')
    expect(existsSync(`${V2}/${prefix}dead-0`)).toBe(false)
    expect(existsSync(`${V2}/${prefix}live-0`)).toBe(true)
    await living.remove()
    expect(existsSync(`${V2}/${prefix}live-0`)).toBe(false)
  })
})
