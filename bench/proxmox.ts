import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'undici'
import { proxmoxToolsSchema } from '../src/config/proxmox-tools.ts'
import { openCallSession } from '../src/mcp/tools/proxmox/call-session.ts'
import { bindAll } from '../src/mcp/tools/proxmox/policy/api-operation.ts'
import { proxmoxToolsets } from '../src/mcp/tools/proxmox/proxmox-toolsets.ts'
import { createProxmoxService, type ProxmoxService } from '../src/mcp/tools/proxmox/service.ts'
import { createProxmox } from '../src/proxmox/proxmox-client.ts'
import { parseSettings } from '../src/proxmox/proxmox-settings.ts'
import { startEmulator } from '../test/support/pve/emulator.ts'
import { newVm } from '../test/support/pve/state.ts'
import { type Bench, type Figure, percentile } from './figure.ts'

const READS = 400
const WARM_UP = 50
const GUESTS = 1000

/** A service over the emulated cluster, with a state directory of its own. */
const withCluster = async (work: (cluster: Cluster) => Promise<Figure[]>): Promise<Figure[]> => {
  const emulator = await startEmulator()
  const stateDir = mkdtempSync(join(tmpdir(), 'deputy-bench-proxmox-'))
  const api = createProxmox(parseSettings({ ...emulator.env(), ...asRoot(emulator.standard.rootPassword) }))
  const settings = proxmoxToolsSchema.parse({ callsPerMinute: 100_000 })
  const service = createProxmoxService({ api, stateDir, settings, own: { vmids: [], tags: [] } })
  try {
    return await work({ emulator, service })
  } finally {
    await api.close()
    await emulator.close()
    rmSync(stateDir, { recursive: true, force: true })
  }
}

const asRoot = (password: string) => ({
  PROXMOX_USER: 'root@pam',
  PROXMOX_TOKEN_NAME: '',
  PROXMOX_TOKEN_VALUE: '',
  PROXMOX_PASSWORD: password,
})

interface Cluster {
  readonly emulator: Awaited<ReturnType<typeof startEmulator>>
  readonly service: ProxmoxService
}

const timed = async (call: () => Promise<unknown>): Promise<number> => {
  const began = performance.now()
  await call()
  return performance.now() - began
}

/** One read through the gate (judged, logged, cleaned of secrets) beside the same request without anything. */
const reads: Bench['run'] = () =>
  withCluster(async ({ emulator, service }) => {
    const { host, port } = emulator.endpoints[0]!
    const { user, tokenName, secret } = emulator.standard
    const bare = new Pool(`https://${host}:${port}`, {
      connect: { rejectUnauthorized: false },
      connections: 1,
      maxRequestsPerClient: 90,
    })
    const headers = { authorization: `PVEAPIToken=${user}!${tokenName}=${secret}` }
    const readBare = async (): Promise<void> => {
      const { body } = await bare.request({ method: 'GET', path: '/api2/json/nodes', headers })
      await body.json()
    }
    const session = openCallSession(service, {
      who: 'bench',
      tool: 'list_nodes',
      action: '',
      confirmation: { kind: 'token' },
      signal: new AbortController().signal,
    })
    const read = () => session.send(bindAll('GET', '/nodes', {}))
    const [ours, floor]: [number[], number[]] = [[], []]
    // By turns, so that whatever else the computer does hits both; the first ones warm up.
    for (let i = -WARM_UP; i < READS; i++) {
      const [one, other] = [await timed(read), await timed(readBare)]
      if (i < 0) continue
      ours.push(one)
      floor.push(other)
    }
    await bare.destroy()
    return [
      {
        name: 'one Proxmox read through client and gate, p50',
        value: percentile(ours, 0.5),
        unit: 'ms',
        floor: { name: 'bare undici request', value: percentile(floor, 0.5) },
        target: { of: 'ratio', at: 'most', limit: 2 },
      },
    ]
  })

/** What a list of a thousand guests costs: requests, time, and tokens at four characters each. */
const guests: Bench['run'] = () =>
  withCluster(async ({ emulator, service }) => {
    for (let vmid = 1000; vmid < 1000 + GUESTS; vmid++) {
      emulator.state.vms.set(
        vmid,
        newVm(vmid, 'pve1', { name: `application-server-${vmid}`, tags: 'web;prod' }),
      )
    }
    const tool = proxmoxToolsets(service)[0]!.tools.find(({ name }) => name === 'get_cluster_resources')!
    const context = {
      deputy: undefined as never,
      origin: 'bench',
      directories: [],
      signal: new AbortController().signal,
    }
    const before = emulator.requests.length
    const began = performance.now()
    const { data } = await tool.call({ type: 'vm' }, context)
    const took = performance.now() - began
    return [
      {
        name: `requests to list ${GUESTS} guests`,
        value: emulator.requests.length - before,
        unit: '',
        target: { of: 'value', at: 'most', limit: 2 },
      },
      {
        name: `a page of ${GUESTS} guests`,
        value: Math.ceil(JSON.stringify(data).length / 4),
        unit: 'tok',
        target: { of: 'value', at: 'most', limit: 4000 },
      },
      { name: `time to list ${GUESTS} guests, first call`, value: took, unit: 'ms' },
    ]
  })

/** What the lists of tools cost a model. */
const lists: Bench['run'] = () =>
  withCluster(async ({ service }) =>
    proxmoxToolsets(service).map(({ name, tools }) => {
      const listed = tools.map(({ name, description, input }) => ({ name, description, input_schema: input }))
      return {
        name: `tools of ${name} (${tools.length})`,
        value: Math.ceil(JSON.stringify(listed).length / 4),
        unit: 'tok',
        ...(name === 'proxmox' && { target: { of: 'value', at: 'most', limit: 1500 } as const }),
      }
    }),
  )

export const proxmoxBenches: Bench[] = [
  { name: 'proxmox-reads', quick: true, run: reads },
  { name: 'proxmox-guests', run: guests },
  { name: 'proxmox-tools', run: lists },
]
