import { connect } from 'node:net'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { type GuestListener, startGuestListener } from '../../../src/guest/listener.ts'
import { GUEST_LIMITS, type GuestLimits } from '../../../src/guest/rate-limiter.ts'
import { hashToken } from '../../../src/guest/token-hash.ts'
import { createTokenBuckets } from '../../../src/jobs/token-buckets.ts'
import { until } from '../../support/engine.ts'
import { createMemoryMachine } from '../../support/guest.ts'

describe('buckets', () => {
  it('let through what was agreed, and never more, however the calls come', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(500), { maxLength: 400 }), pauses => {
        let at = 0
        const buckets = createTokenBuckets({ perSecond: 10, burst: 5, now: () => at })
        let admitted = 0
        for (const pause of pauses) {
          at += pause
          if (buckets.take('one') === 0) admitted++
        }
        expect(admitted).toBeLessThanOrEqual(5 + (at / 1000) * 10)
        at += 1000
        expect(buckets.take('one')).toBe(0)
      }),
    )
  })

  it('tell how long to wait, and that time is enough', () => {
    let at = 0
    const buckets = createTokenBuckets({ perSecond: 4, burst: 1, now: () => at })
    expect(buckets.take('a')).toBe(0)
    buckets.charge('a', 8)
    const wait = buckets.take('a')
    expect(wait).toBeCloseTo(2.25)
    expect(buckets.take('b')).toBe(0)
    at += wait * 1000
    expect(buckets.take('a')).toBe(0)
  })

  it('stay few, whatever keys a stranger makes up', () => {
    const buckets = createTokenBuckets({ perSecond: 1, burst: 2, now: () => 0 })
    for (let i = 0; i < 30_000; i++) buckets.take(`key ${i}`)
    expect(buckets.size).toBe(10_000)
    expect(buckets.take('one more')).toBeGreaterThan(0)
  })
})

const TOKENS = ['token-of-machine-a-0123456789', 'token-of-machine-b-0123456789'] as const
let listener: GuestListener | undefined
afterEach(() => listener?.close())

/** Two machines that share a listener. */
const open = async (limits: Partial<GuestLimits>) => {
  const memories = TOKENS.map(() => createMemoryMachine({ argv: ['true'] }))
  let waiting = 0
  listener = await startGuestListener({
    host: '127.0.0.1',
    port: 0,
    limits: { ...GUEST_LIMITS, ...limits },
    machine: hash => {
      const index = TOKENS.findIndex(token => hashToken(token) === hash)
      const memory = memories[index]
      return (
        memory && {
          ...memory.machine,
          work: signal => {
            waiting++
            return new Promise(resolve =>
              signal.addEventListener('abort', () => {
                waiting--
                resolve(undefined)
              }),
            )
          },
        }
      )
    },
  })
  const { port } = listener
  const { jobId } = memories[0]!.spec
  const call = (token: string | undefined, path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      ...init,
      ...(token && { headers: { authorization: `Bearer ${token}` } }),
    })
  const beat = (token: string | undefined) => call(token, `/guest/v1/jobs/${jobId}/heartbeat`)
  return { port, jobId, call, beat, waiting: () => waiting }
}

const count = (statuses: readonly number[], status: number) => statuses.filter(one => one === status).length

describe('a listener with limits', () => {
  it('refuses a machine that calls too often, tells it when to come again, and serves the other', async () => {
    const { beat, call, jobId } = await open({ perSecond: 0.01, burst: 5 })
    const answers = await Promise.all(Array.from({ length: 20 }, () => beat(TOKENS[0])))
    const statuses = answers.map(answer => answer.status)
    expect(count(statuses, 200)).toBe(5)
    const refused = answers.find(answer => answer.status === 429)!
    expect(refused.headers.get('retry-after')).toMatch(/^[1-9]$/)
    expect(await refused.text()).toBe(refused.headers.get('retry-after'))
    expect((await beat(TOKENS[1])).status).toBe(200)
    const older = await call(TOKENS[0], `/callback/${jobId}/heartbeat`)
    expect([older.status, await older.json()]).toEqual([429, { error: 'Too many requests' }])
  })

  it('counts what is sent, too', async () => {
    const { call, jobId, beat } = await open({ perSecond: 0.01, burst: 6 })
    const path = `/guest/v1/jobs/${jobId}/output?stream=stdout&offset=0`
    expect((await call(TOKENS[0], path, { body: 'x'.repeat(2 ** 20) })).status).toBe(200)
    await until(async () => (await beat(TOKENS[0])).status === 429, 'the debt is noted')
  })

  it('refuses strangers by their address, and machines from there are still heard', async () => {
    const { beat } = await open({ strangersPerSecond: 0.01, strangersBurst: 3 })
    const statuses = (
      await Promise.all(Array.from({ length: 12 }, (_, i) => beat(`wrong-token-wrong-token-${i}`)))
    ).map(answer => answer.status)
    expect([count(statuses, 401), count(statuses, 429)]).toEqual([3, 9])
    expect((await beat(TOKENS[0])).status).toBe(200)
  })

  it('lets a machine have only so many calls under way', async () => {
    const { call, beat, waiting } = await open({ inFlight: 4 })
    const leave = new AbortController()
    const polls = Array.from({ length: 4 }, () =>
      call(TOKENS[0], '/guest/v1/work', { method: 'GET', signal: leave.signal }).catch(() => {}),
    )
    await until(() => waiting() === 4, 'four wait')
    expect((await beat(TOKENS[0])).status).toBe(429)
    expect((await beat(TOKENS[1])).status).toBe(200)
    leave.abort()
    await Promise.all(polls)
    await until(async () => (await beat(TOKENS[0])).status === 200, 'there is room again')
  })

  it('takes only so many connections from one address', async () => {
    const { port } = await open({ connectionsPerAddress: 3 })
    const open3 = Array.from({ length: 3 }, () => connect(port, '127.0.0.1'))
    await Promise.all(open3.map(socket => new Promise(resolve => socket.once('connect', resolve))))
    const fourth = connect(port, '127.0.0.1')
    fourth.on('error', () => {})
    await new Promise(resolve => fourth.once('close', resolve))
    for (const socket of open3) expect(socket.destroyed).toBe(false)
    for (const socket of open3) socket.destroy()
    await until(async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined)
      return answer?.status === 200
    }, 'there is room again')
  })

  it('hangs up on one who goes on talking after the answer', async () => {
    const { port, jobId } = await open({})
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(
      `POST /guest/v1/jobs/${jobId}/heartbeat HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKENS[0]}\r\ncontent-length: 1000000000\r\n\r\n`,
    )
    await new Promise(resolve => socket.once('data', resolve))
    const talk = setInterval(() => socket.write('x'.repeat(1000)), 50)
    await new Promise(resolve => socket.once('close', resolve))
    clearInterval(talk)
  })
})
