import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'undici'
import { createMemoryMachine, serveMachine, TOKEN } from '../test/support/guest.ts'
import { openLab } from '../test/support/proxmox-runtime.ts'
import { type Bench, type Figure, percentile } from './figure.ts'

const JOBS = 200
const SLOTS = 20
const COLD = 10
const REPORTS = 4000
const IN_FLIGHT = 16
const never = new AbortController().signal

/** The control plane alone: an emulated cluster whose tasks take no time, and guests that are processes. */
const jobs: Bench['run'] = async () => {
  const quick = { cloneMs: 1, startMs: 1, stopMs: 1, taskMs: 1 }
  const lab = await openLab({
    emulator: { timing: quick },
    runtime: {
      limit: SLOTS,
      vmids: { first: 100_000, last: 109_999 },
      parallel: { clones: 8, starts: 8, deletes: 8 },
    },
  })
  try {
    const engine = await lab.open(lab.makeRuntime())
    const started: number[] = []
    for (let i = 0; i < COLD; i++) {
      const { job_id } = await engine.deputy.submit({ task: 'true', runtime: 'proxmox' }, 'bench')
      const view = await engine.deputy.wait(job_id, { timeoutMs: 60_000, signal: never })
      if (view.status !== 'success') throw new Error(`a job ended as ${view.status}: ${view.error?.message}`)
      started.push(view.phases?.provisioning ?? Number.NaN)
    }
    const began = performance.now()
    const submitted = await Promise.all(
      Array.from({ length: JOBS }, () => engine.deputy.submit({ task: 'true', runtime: 'proxmox' }, 'bench')),
    )
    let failed = 0
    for (const { job_id } of submitted) {
      const view = await engine.deputy.wait(job_id, { timeoutMs: 600_000, signal: never })
      if (view.status !== 'success') failed++
    }
    const seconds = (performance.now() - began) / 1000
    const end = performance.now() + 60_000
    while ((lab.machines().length > 0 || lab.seeds().length > 0) && performance.now() < end)
      await new Promise(resolve => setTimeout(resolve, 100))
    return [
      { name: 'VM job: submit to running, p50', value: percentile(started, 0.5), unit: 'ms' },
      { name: `VM jobs: ${JOBS} through ${SLOTS} slots`, value: JOBS / seconds, unit: '/s' },
      { name: 'VM jobs: failed', value: failed, unit: '', target: { of: 'value', at: 'most', limit: 0 } },
      {
        name: 'VM jobs: machines and seeds left',
        value: lab.machines().length + lab.seeds().length,
        unit: '',
        target: { of: 'value', at: 'most', limit: 0 },
      },
    ]
  } finally {
    await lab.close()
  }
}

/** Reports of machines beside the least that node:http can do: take the body, parse it, keep it in a map. */
const callbacks: Bench['run'] = async () => {
  const memory = createMemoryMachine({ argv: ['true'] })
  const ours = await serveMachine(memory)
  const kept = new Map<string, unknown>()
  const bare = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => {
      kept.set('job', chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : {})
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"received":true}')
    })
  })
  await new Promise<void>(resolve => bare.listen(0, '127.0.0.1', resolve))
  const barePort = (bare.address() as AddressInfo).port
  const at = `/guest/v1/jobs/${memory.spec.jobId}`
  const frame = Buffer.alloc(4096, 'x')
  try {
    const beat = () => rate(ours.port, () => ({ path: `${at}/heartbeat` }))
    const bareBeat = () => rate(barePort, () => ({ path: '/callback/x/heartbeat' }))
    // Once for nothing: whoever comes first pays for the compiler.
    await beat()
    await bareBeat()
    const heartbeat = await beat()
    const floor = await bareBeat()
    let offset = 0
    const output = await rate(ours.port, () => {
      const path = `${at}/output?stream=stdout&offset=${offset}`
      offset += frame.length
      return { path, body: frame }
    })
    const json = JSON.stringify({ job_id: 'x', progress: 'y', output: frame.toString() })
    const floorOutput = await rate(barePort, () => ({ path: '/callback/x/status', body: json }))
    return [
      {
        name: 'machine report: heartbeat',
        value: heartbeat,
        unit: '/s',
        floor: { name: 'bare node:http', value: floor },
      },
      {
        name: 'machine report: 4 KB of output',
        value: output,
        unit: '/s',
        floor: { name: 'bare node:http, JSON', value: floorOutput },
      },
    ] satisfies Figure[]
  } finally {
    await ours.close()
    bare.closeAllConnections()
    bare.close()
  }
}

const rate = async (port: number, next: () => { path: string; body?: Buffer | string }): Promise<number> => {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: IN_FLIGHT })
  const post = async () => {
    const { path, body } = next()
    const answer = await pool.request({
      path,
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}` },
      body: body ?? null,
    })
    await answer.body.dump()
    if (answer.statusCode !== 200) throw new Error(`${path} was answered with ${answer.statusCode}`)
  }
  for (let i = 0; i < 200; i++) await post()
  let left = REPORTS
  const began = performance.now()
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => {
      while (left-- > 0) await post()
    }),
  )
  const seconds = (performance.now() - began) / 1000
  await pool.close()
  return REPORTS / seconds
}

export const machineBenches: Bench[] = [
  { name: 'callbacks', run: callbacks },
  { name: 'vm-jobs', run: jobs },
]
