import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fields, pick } from '../../../../src/mcp/tools/proxmox/shape/fields.ts'
import { toPage } from '../../../../src/mcp/tools/proxmox/shape/result-page.ts'
import { toLines, toText } from '../../../../src/mcp/tools/proxmox/shape/text-lines.ts'
import { toSeries } from '../../../../src/mcp/tools/proxmox/shape/time-series.ts'
import { estimateTokens } from '../../../support/mcp/tokens.ts'
import { createFakeCluster } from '../../../support/proxmox/fake-cluster.ts'
import { proxmoxTools } from '../../../support/proxmox/tools.ts'

const many = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    id: `qemu/${100 + i}`,
    type: i % 5 === 0 ? 'lxc' : 'qemu',
    vmid: 100 + i,
    name: `application-server-${i}`,
    status: i % 3 === 0 ? 'stopped' : 'running',
    node: `pve${i % 8}`,
    cpu: 0.0123,
    maxcpu: 4,
    mem: 1610612736,
    maxmem: 4294967296,
    disk: 0,
    maxdisk: 34359738368,
    uptime: 86400 + i,
    pool: 'production',
    tags: 'web;prod',
    template: 0,
    netin: 123456789,
    netout: 987654321,
    diskread: 1,
    diskwrite: 2,
  }))

describe('a list of a thousand guests', () => {
  const own = { 'GET /cluster/resources': many(1000) }

  it.each([
    ['get_cluster_resources', { type: 'vm' }],
    ['proxmox_guest_list', {}],
    ['proxmox_vm_list', {}],
  ])('costs %s one request and under 4,000 tokens a page', async (tool, args) => {
    const api = createFakeCluster(own)
    const { call } = proxmoxTools(api)
    const { data } = await call(tool, args)
    expect(estimateTokens(JSON.stringify(data))).toBeLessThan(4000)
    expect(JSON.stringify(data).length / 4).toBeLessThan(4000)
    expect(api.sent).toHaveLength(1)
    expect(data.next_cursor).toBeDefined()
  })

  it('is read to its end by cursors, each guest once', async () => {
    const { call } = proxmoxTools(createFakeCluster(own))
    const seen: unknown[] = []
    let cursor: unknown
    do {
      const { data } = await call('get_cluster_resources', {
        type: 'vm',
        fields: 'vmid',
        limit: 300,
        ...(cursor !== undefined && { cursor }),
      })
      seen.push(...(data.rows as unknown[][]).flat())
      cursor = data.next_cursor
    } while (cursor !== undefined)
    expect(seen).toEqual(Array.from({ length: 1000 }, (_, i) => 100 + i))
  })

  it('is narrowed by type and filter', async () => {
    const { call } = proxmoxTools(createFakeCluster(own))
    const total = async (args: object) => (await call('get_cluster_resources', args)).data.total
    expect(await total({ type: 'lxc' })).toBe(200)
    expect(await total({ type: 'vm', filter: 'node=pve3' })).toBe(125)
    expect(await total({ type: 'vm', filter: 'status=stopped' })).toBe(334)
    expect(await total({ type: 'vm', filter: 'pool=none' })).toBe(0)
    expect(await total({ type: 'vm', filter: 'tags~prod' })).toBe(1000)
    expect(await total({ type: 'vm', filter: 'name~server-99 mem_gib>1' })).toBe(11)
  })

  it('refuses a cursor of another query, an unknown column and an unknown filter', async () => {
    const { call } = proxmoxTools(createFakeCluster(own))
    const { data } = await call('proxmox_guest_list', { filter: 'status=running' })
    await expect(call('proxmox_guest_list', { cursor: data.next_cursor })).rejects.toThrow('does not belong')
    await expect(call('proxmox_guest_list', { fields: 'vmid,colour' })).rejects.toThrow("No column 'colour'")
    await expect(call('proxmox_guest_list', { filter: 'colour=red' })).rejects.toThrow("No column 'colour'")
  })
})

describe('units', () => {
  const one = (spec: string, value: unknown) => pick({ x: value }, fields(spec)[0]!)

  it.each([
    ['x:pct', 0.0123, 1.2],
    ['x:pct', '0.75', 75],
    ['x:gib', '2147483648', 2],
    ['x:mib', 1048576, 1],
    ['x:int', '100', 100],
    ['x:bool', 1, true],
    ['x:bool', '0', false],
    ['x:time', '1735729200', '2025-01-01T11:00:00Z'],
    ['x:s', 3.7, 4],
    ['x:int', 'n/a', 'n/a'],
    ['x:gib', '', ''],
    ['x', null, null],
  ])('%s of %j is %j', (spec, value, shown) => {
    expect(one(spec, value)).toEqual(shown)
  })

  it('cpu is cpu', async () => {
    const { call } = proxmoxTools(createFakeCluster())
    const { data } = await call('proxmox_guest_list', {
      filter: 'vmid=100',
      fields: 'cpu_pct,mem_gib,maxmem_gib',
    })
    expect(data.rows).toEqual([[1.2, 1.5, 2]])
  })

  it('never throw, whatever Proxmox sends', () => {
    fc.assert(
      fc.property(fc.array(fc.dictionary(fc.string(), fc.anything())), items => {
        JSON.stringify(toPage(items, fields('vmid:int cpu:pct mem:gib a.b:time')))
        JSON.stringify(toSeries(items, fields('time:time cpu:pct')))
        JSON.stringify(toLines(items))
      }),
    )
  })
})

describe('measurements', () => {
  const points = Array.from({ length: 70 }, (_, i) => ({
    time: 1735729200 + i * 60,
    cpu: i / 100,
    ...(i === 69 && { cpu: undefined }),
  }))

  it('are few, and the last is the newest', () => {
    const { rows, columns, total } = toSeries(points, fields('time:time cpu:pct iowait:pct'), { points: 10 })
    expect(columns).toEqual(['time', 'cpu_pct'])
    expect(total).toBe(69)
    expect((rows as unknown[][]).length).toBeLessThanOrEqual(10)
    expect((rows as unknown[][]).at(-1)![0]).toBe('2025-01-01T12:08:00Z')
    expect((rows as number[][]).at(-1)![1]).toBeCloseTo(65, 0)
  })

  it('are peaks when peaks were asked for', () => {
    const { rows } = toSeries(points, fields('time:time cpu:pct'), { points: 1, peak: true })
    expect((rows as number[][])[0]![1]).toBe(68)
  })
})

describe('logs and texts', () => {
  it('keep the newest lines and count the rest', () => {
    const log = Array.from({ length: 300 }, (_, n) => ({ n: n + 1, t: `line ${n + 1}` }))
    expect(toLines(log, { limit: 2 })).toEqual({ lines: ['line 299', 'line 300'], total: 300, omitted: 298 })
    expect(toLines(['a', 'b'])).toEqual({ lines: ['a', 'b'], total: 2 })
    expect(JSON.stringify(toLines(log.map(() => 'x'.repeat(5000)))).length).toBeLessThan(14_000)
  })

  it('keep head and tail', () => {
    const { text, omitted_chars } = toText(`head${'x'.repeat(50_000)}tail`)
    expect(text).toMatch(/^head[\s\S]*tail$/)
    expect(omitted_chars).toBeGreaterThan(30_000)
  })
})
