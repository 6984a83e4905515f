import { Agent, request } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { GuestListener } from '../../../src/guest/listener.ts'
import type { CompletePayload, StatusPayload } from '../../../src/guest/protocol.ts'
import { createMemoryMachine, serveMachine, TOKEN } from '../../support/guest.ts'

let listener: GuestListener | undefined
afterEach(() => listener?.close())

const open = async (more: Parameters<typeof serveMachine>[1] = {}) => {
  const memory = createMemoryMachine({ argv: ['true'] })
  const completed: CompletePayload[] = []
  const told: StatusPayload[] = []
  const job = memory.machine.job(memory.spec.jobId)!
  job.complete = async payload => void completed.push(payload)
  job.status = async payload => void told.push(payload)
  listener = await serveMachine(memory, more)
  const call = (method: string, path: string, body?: string, token: string | null = TOKEN) =>
    fetch(`http://127.0.0.1:${listener!.port}${path}`, {
      method,
      ...(body === undefined ? {} : { body }),
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        'content-type': 'application/json',
      },
    })
  return { memory, completed, told, call, id: memory.spec.jobId }
}

/** Over one connection for as long as the agent is the same. */
const ask = (method: string, path: string, agent: Agent) =>
  new Promise<{ status: number; body: string }>((resolve, reject) => {
    const headers = { authorization: `Bearer ${TOKEN}` }
    request({ port: listener!.port, host: '127.0.0.1', method, path, agent, headers }, async response => {
      let body = ''
      for await (const chunk of response) body += chunk
      resolve({ status: response.statusCode!, body })
    })
      .on('error', reject)
      .end()
  })

describe('the guest listener', () => {
  it('answers everybody that it is well, and nothing else', async () => {
    const { call, id } = await open()
    const health = await call('GET', '/health', undefined, null)
    expect([health.status, await health.json()]).toEqual([200, { status: 'ok' }])
    for (const path of ['/guest/v1/work', `/callback/${id}/heartbeat`, '/', '/api/v1/jobs']) {
      expect((await call('POST', path, '{}', null)).status).toBe(401)
      expect((await call('POST', path, '{}', 'wrong-token-wrong-token')).status).toBe(401)
    }
  })

  it('tells of every call by one of a few kinds, whatever a machine makes up', async () => {
    const calls: string[] = []
    const { call, id } = await open({ onCall: (kind, status) => void calls.push(`${kind} ${status}`) })
    await call('GET', '/health', undefined, null)
    await call('POST', `/callback/${id}/heartbeat`)
    await call('POST', '/callback/x/heartbeat', '{}', null)
    await call('GET', '/made/up/by/a/machine')
    await vi.waitFor(() => expect(calls).toHaveLength(4))
    expect(calls).toEqual(['health 200', 'heartbeat 200', 'heartbeat 401', 'other 404'])
  })

  it('asks strangers to come again while it does not know everybody yet', async () => {
    const { call } = await open({ mayBeUnknown: () => true })
    expect((await call('GET', '/guest/v1/work', undefined, 'unknown-token-unknown')).status).toBe(503)
  })

  it('takes an order for begun when that comes over the connection that brought it, and over no other', async () => {
    const { memory, id } = await open()
    const one = new Agent({ keepAlive: true, maxSockets: 1 })
    const other = new Agent({ keepAlive: true, maxSockets: 1 })
    const nothing = { status: 204, body: '' }
    const begin = (agent: Agent) => ask('POST', '/guest/v1/begin', agent)
    try {
      expect(await begin(one)).toEqual(nothing)
      expect((await ask('GET', '/guest/v1/work', one)).body).toContain(`job ${id}`)
      expect(await begin(other)).toEqual(nothing)
      expect(memory.state.startedCount).toBe(0)
      expect(await begin(one)).toEqual({ status: 200, body: `${id} 0 run` })
      expect(memory.state.startedCount).toBe(1)
      expect(await begin(one)).toEqual(nothing)
    } finally {
      one.destroy()
      other.destroy()
    }
  })

  it('does not take an order for begun while something has to be fetched for it, or when it is over', async () => {
    const { memory, id } = await open()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    try {
      memory.machine.work = async () => ({ jobId: id, order: 'end\n', isAll: false })
      await ask('GET', '/guest/v1/work', agent)
      expect((await ask('POST', '/guest/v1/begin', agent)).status).toBe(204)
      memory.machine.work = async () => ({ jobId: id, order: 'end\n', isAll: true })
      await ask('GET', '/guest/v1/work', agent)
      memory.machine.job = () => undefined
      expect((await ask('POST', '/guest/v1/begin', agent)).status).toBe(204)
      expect(memory.state.startedCount).toBe(0)
    } finally {
      agent.destroy()
    }
  })

  it('takes the reports of older runners in their own shapes', async () => {
    const { call, id, completed, told } = await open()
    const beat = await call('POST', `/callback/${id}/heartbeat`)
    expect([beat.status, await beat.json()]).toEqual([200, { received: true }])
    const status = await call(
      'POST',
      `/callback/${id}/status`,
      JSON.stringify({ job_id: id, progress: 'half' }),
    )
    expect(await status.json()).toEqual({ received: true })
    expect(told).toEqual([{ job_id: id, progress: 'half' }])
    const payload = { job_id: id, status: 'success', exit_code: 0, output: 'x', duration_seconds: 1 }
    expect((await call('POST', `/callback/${id}/complete`, JSON.stringify(payload))).status).toBe(200)
    expect(completed).toHaveLength(1)
  })

  it('refuses what does not fit, without a stack', async () => {
    const { call, id } = await open()
    const other = '018f0000-0000-7000-8000-000000000002'
    const missing = await call('POST', `/callback/${other}/heartbeat`)
    expect([missing.status, await missing.json()]).toEqual([404, { error: 'Job not found' }])
    for (const body of ['{', '{}', 'null', JSON.stringify({ job_id: other, progress: 'x' })]) {
      const answer = await call('POST', `/callback/${id}/status`, body)
      expect(answer.status).toBe(400)
      expect(await answer.json()).toMatchObject({ error: 'Invalid payload', details: expect.any(Array) })
    }
  })

  it.each(['stream=stdin&offset=0', 'stream=stdout', 'stream=stdout&offset=-1', 'stream=stdout&offset=x'])(
    'refuses output with %s',
    async query => {
      const { call, id } = await open()
      expect((await call('POST', `/guest/v1/jobs/${id}/output?${query}`, 'x')).status).toBe(400)
    },
  )

  it("refuses a frame that is too large, and a job that is not the machine's", async () => {
    const { call, id, memory } = await open()
    const big = await call(
      'POST',
      `/guest/v1/jobs/${id}/output?stream=stdout&offset=0`,
      'x'.repeat(3_000_000),
    ).catch(() => ({ status: 413 }))
    expect(big.status).toBe(413)
    expect(memory.state.position).toBe(0)
    expect((await call('POST', '/guest/v1/jobs/other/output?stream=stdout&offset=0', 'x')).status).toBe(410)
  })

  it('serves a seed by its name alone, and empty files rather than none', async () => {
    const seed = { metaData: 'm', userData: 'u', vendorData: '', networkConfig: 'n' }
    const { call } = await open({ seed: name => (name === 'secret-name' ? seed : undefined) })
    expect(await (await call('GET', '/seed/secret-name/user-data', undefined, null)).text()).toBe('u')
    expect((await call('GET', '/seed/secret-name/vendor-data', undefined, null)).status).toBe(200)
    expect((await call('GET', '/seed/other/user-data', undefined, null)).status).toBe(404)
    expect((await call('GET', '/seed/secret-name/passwd', undefined, null)).status).toBe(404)
  })
})
