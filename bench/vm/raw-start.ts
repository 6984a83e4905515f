import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'undici'
import { buildSeed, seedIso } from '../../src/guest/seed.ts'
import type { Emulator } from '../../test/support/pve/emulator.ts'

const TEMPLATE = 9000
const NODE = 'pve1'

/**
 * The floor of a start: the calls to Proxmox VE that make a machine of ours, one after the other without a thought
 * in between, and a bare server that gives the guest its work. Returns milliseconds of each.
 */
export const rawStarts = async (emulator: Emulator, count: number): Promise<number[]> => {
  const { host, port } = emulator.endpoints[0]!
  const { user, tokenName, secret } = emulator.standard
  const pool = new Pool(`https://${host}:${port}`, {
    connect: { rejectUnauthorized: false },
    connections: 4,
    maxRequestsPerClient: 90,
  })
  const authorization = `PVEAPIToken=${user}!${tokenName}=${secret}`
  const call = async <T>(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    body?: Record<string, string>,
  ) => {
    const answer = await pool.request({
      method,
      path: `/api2/json${path}`,
      headers: { authorization, ...(body && { 'content-type': 'application/x-www-form-urlencoded' }) },
      body: body ? new URLSearchParams(body).toString() : null,
    })
    if (answer.statusCode !== 200)
      throw new Error(`${path}: ${answer.statusCode} ${await answer.body.text()}`)
    return ((await answer.body.json()) as { data: T }).data
  }
  const finish = async (upid: string): Promise<void> => {
    const at = `/nodes/${NODE}/tasks/${encodeURIComponent(upid)}/status`
    while ((await call<{ status: string }>('GET', at)).status !== 'stopped');
  }
  const upload = async (filename: string, file: Buffer): Promise<void> => {
    const answer = await pool.request({
      method: 'POST',
      path: `/api2/json/nodes/${NODE}/storage/seeds/upload`,
      ...multipart({ content: 'iso' }, filename, file, authorization),
    })
    if (answer.statusCode !== 200) throw new Error(`upload: ${await answer.body.text()}`)
    await finish(((await answer.body.json()) as { data: string }).data)
  }
  const desk = await openDesk()
  try {
    const times: number[] = []
    for (let i = 0; i < count; i++) {
      const vmid = 200_000 + i
      const vm = `/nodes/${NODE}/qemu/${vmid}`
      const name = `raw-${vmid}`
      const began = performance.now()
      await call('GET', '/cluster/resources?type=vm')
      await call('GET', `/nodes/${NODE}/qemu/${TEMPLATE}/config`)
      await Promise.all([call('GET', '/nodes'), call('GET', `/nodes/${NODE}/storage?enabled=1`)])
      await finish(
        await call('POST', `/nodes/${NODE}/qemu/${TEMPLATE}/clone`, {
          newid: String(vmid),
          name,
          pool: 'jobs',
          full: '0',
        }),
      )
      await call('PUT', `${vm}/config`, { cores: '1', memory: '512', onboot: '0' })
      await call('PUT', `${vm}/firewall/options`, { enable: '1', policy_in: 'DROP', policy_out: 'DROP' })
      await call('POST', `${vm}/firewall/rules`, {
        type: 'out',
        action: 'ACCEPT',
        enable: '1',
        dest: '127.0.0.1',
        proto: 'tcp',
        dport: '8765',
      })
      const seed = buildSeed({
        instanceId: name,
        hostname: name,
        callback: { url: desk.url, token: 'token' },
      })
      await upload(`${name}.iso`, seedIso(seed))
      await call('PUT', `${vm}/config`, { ide2: `seeds:iso/${name}.iso,media=cdrom` })
      const running = desk.next()
      await finish(await call('POST', `${vm}/status/start`, {}))
      await running
      times.push(performance.now() - began)
      await finish(await call('POST', `${vm}/status/stop`, {}))
      await finish(await call('DELETE', vm))
      await finish(await call('DELETE', `/nodes/${NODE}/storage/seeds/content/seeds:iso/${name}.iso`))
    }
    return times
  } finally {
    await pool.destroy()
    await desk.close()
  }
}

/** As Proxmox VE wants it: with a length, the file last. */
const multipart = (
  fields: Readonly<Record<string, string>>,
  filename: string,
  file: Buffer,
  authorization: string,
) => {
  const boundary = 'raw-start-boundary'
  const parts = Object.entries(fields).map(
    ([name, value]) => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  )
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="filename"; filename="${filename}"\r\nContent-Type: application/octet-stream\r\n\r\n`
  const body = Buffer.concat([
    Buffer.from(parts.join('') + head),
    file,
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ])
  return {
    body,
    headers: {
      authorization,
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': String(body.length),
    },
  }
}

/** Gives every guest the same work, and tells when one has started it. */
const openDesk = async () => {
  let told: () => void = () => {}
  const server = createServer((request, response) => {
    if (request.url?.endsWith('/started')) told()
    response.end(request.url?.endsWith('/work') ? 'deputy 1\njob raw\nend\n' : '')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    next: () =>
      new Promise<void>(resolve => {
        told = resolve
      }),
    close: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
