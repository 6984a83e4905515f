import { afterEach, describe, expect, it } from 'vitest'
import type { GuestDriver } from '../../support/pve/guests/driver.ts'
import { type Cluster, startCluster } from '../../support/pve.ts'

let cluster: Cluster
afterEach(() => cluster.close())

/** The beginning of an image that says it holds a disk of that size. */
const qcow2 = (size: number): Buffer => {
  const header = Buffer.alloc(104)
  header.write('QFI\xfb', 'latin1')
  header.writeBigUInt64BE(BigInt(size), 24)
  return header
}

const begin = async (image: Buffer) => {
  const seen: string[] = []
  const guests: GuestDriver = {
    start: async () => ({ stop: async () => {}, shutdown: async () => true, agent: () => undefined }),
    imported: async (vmid, content) => void seen.push(`${vmid} holds ${content.equals(image)}`),
    cloned: async ({ from, to, full }) => void seen.push(`${to} of ${from}, full: ${full}`),
  }
  cluster = await startCluster({ guests })
  const root = cluster.root()
  const done = async (upid: Promise<string>) => root.waitTask(await upid)
  await root.upload({ node: 'pve1', storage: 'local', content: 'import', filename: 'a.qcow2', file: image })
  await done(
    root.post('/nodes/pve1/qemu', { vmid: 500, scsi0: 'local-lvm:0,import-from=local:import/a.qcow2' }),
  )
  const config = (vmid: number) => root.get<Record<string, string>>(`/nodes/pve1/qemu/${vmid}/config`)
  return { root, seen, done, config }
}

describe('the disk of an emulated machine', () => {
  it('is as large as its image says, and holds what that held', async () => {
    const { seen, config } = await begin(qcow2(3 * 2 ** 30))
    expect((await config(500)).scsi0).toBe('local-lvm:vm-500-disk-0,size=3G')
    expect(seen).toEqual(['500 holds true'])
  })

  it('is what clones begin with, and has the name of a base in a template', async () => {
    const { root, seen, done, config } = await begin(qcow2(2 ** 30))
    await done(root.post('/nodes/pve1/qemu/500/clone', { newid: 501, full: true }))
    await done(root.post('/nodes/pve1/qemu/500/template'))
    expect((await config(500)).scsi0).toBe('local-lvm:base-500-disk-0,size=1G')
    await done(root.post('/nodes/pve1/qemu/500/clone', { newid: 502 }))
    expect((await config(502)).scsi0).toBe('local-lvm:vm-502-disk-0,size=1G')
    expect(seen.slice(1)).toEqual(['501 of 500, full: true', '502 of 500, full: false'])
  })
})
