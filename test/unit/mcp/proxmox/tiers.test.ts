import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bindAll, type Operation } from '../../../../src/mcp/tools/proxmox/policy/api-operation.ts'
import { tierOf } from '../../../../src/mcp/tools/proxmox/policy/tier.ts'
import type { Method } from '../../../../src/mcp/tools/proxmox/table/define-row.ts'
import { loadApiIndex } from '../../../support/proxmox/api-index.ts'

/** Every operation there is, with something in each placeholder. */
const operations = loadApiIndex().map(({ method, path }) => ({
  name: `${method} ${path}`,
  tier: tierOf(bindAll(method as Method, path.replaceAll('{}', 'x1'), {})),
}))
const exceptions = (method: string, usual: string) =>
  operations
    .filter(({ name, tier }) => name.startsWith(`${method} `) && tier !== usual)
    .map(({ name, tier }) => `${tier} ${name}`)
    .sort()

describe('of all operations of Proxmox VE', () => {
  it('reading is free but for what shows the inside of guests and backups', () => {
    expect(exceptions('GET', 'read')).toEqual([
      'elevated GET /nodes/{}/lxc/{}/mtunnelwebsocket',
      'elevated GET /nodes/{}/lxc/{}/vncwebsocket',
      'elevated GET /nodes/{}/qemu/{}/agent/exec-status',
      'elevated GET /nodes/{}/qemu/{}/agent/file-read',
      'elevated GET /nodes/{}/qemu/{}/mtunnelwebsocket',
      'elevated GET /nodes/{}/qemu/{}/vncwebsocket',
      'elevated GET /nodes/{}/storage/{}/file-restore/download',
      'elevated GET /nodes/{}/vncwebsocket',
    ])
  })

  it('deleting needs the user but for what takes back what was not done', () => {
    expect(exceptions('DELETE', 'destructive')).toEqual([
      'elevated DELETE /cluster/sdn/lock',
      'elevated DELETE /nodes/{}/network',
      'elevated DELETE /nodes/{}/tasks/{}',
    ])
  })

  it('these changes need the user, whatever their parameters', () => {
    expect(
      [...exceptions('POST', 'elevated'), ...exceptions('PUT', 'elevated')].filter(one =>
        one.startsWith('destructive'),
      ),
    ).toEqual([
      'destructive POST /cluster/bulk-action/guest/migrate',
      'destructive POST /cluster/bulk-action/guest/shutdown',
      'destructive POST /cluster/bulk-action/guest/suspend',
      'destructive POST /cluster/config/join',
      'destructive POST /nodes/{}/ceph/osd',
      'destructive POST /nodes/{}/ceph/stop',
      'destructive POST /nodes/{}/disks/directory',
      'destructive POST /nodes/{}/disks/initgpt',
      'destructive POST /nodes/{}/disks/lvm',
      'destructive POST /nodes/{}/disks/lvmthin',
      'destructive POST /nodes/{}/disks/zfs',
      'destructive POST /nodes/{}/execute',
      'destructive POST /nodes/{}/lxc/{}/snapshot/{}/rollback',
      'destructive POST /nodes/{}/migrateall',
      'destructive POST /nodes/{}/qemu/{}/monitor',
      'destructive POST /nodes/{}/qemu/{}/snapshot/{}/rollback',
      'destructive POST /nodes/{}/spiceshell',
      'destructive POST /nodes/{}/status',
      'destructive POST /nodes/{}/stopall',
      'destructive POST /nodes/{}/suspendall',
      'destructive POST /nodes/{}/termproxy',
      'destructive POST /nodes/{}/vncshell',
      'destructive PUT /nodes/{}/disks/wipedisk',
    ])
  })

  it('a question to the guest agent is the only POST that reads', () => {
    const reading = [...exceptions('POST', 'elevated'), ...exceptions('PUT', 'elevated')].filter(one =>
      one.startsWith('read'),
    )
    expect(reading).toEqual([
      'read POST /nodes/{}/qemu/{}/agent/fsfreeze-status',
      'read POST /nodes/{}/qemu/{}/agent/ping',
    ])
  })
})

describe('of operations nobody has heard of', () => {
  const segments = fc.array(
    fc.oneof(
      fc.constantFrom('nodes', 'cluster', 'qemu', 'agent', 'status', '100', 'pve1'),
      fc.string({ minLength: 1 }),
    ),
    { minLength: 1, maxLength: 7 },
  )
  const some = (method: Method) =>
    fc.record({ method: fc.constant(method), segments, params: fc.constant({}) })

  it('none that changes is free', () => {
    const isQuestion = (operation: Operation) => operation.segments.includes('agent')
    fc.assert(
      fc.property(
        fc.oneof(some('POST'), some('PUT')),
        operation => isQuestion(operation) || tierOf(operation) !== 'read',
      ),
    )
  })

  it('none that deletes passes as a change unless it is known', () => {
    const KNOWN = ['tasks', 'network', 'lock']
    fc.assert(
      fc.property(
        some('DELETE'),
        operation =>
          operation.segments.some(one => KNOWN.includes(one)) || tierOf(operation) === 'destructive',
      ),
    )
  })
})
