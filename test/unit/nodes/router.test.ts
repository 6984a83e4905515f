import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AppError } from '../../../src/jobs/errors.ts'
import { createCircuitBreakers } from '../../../src/nodes/circuit-breaker.ts'
import { type Candidate, type Measurement, route } from '../../../src/nodes/router.ts'
import { thrownError as failure } from '../../support/thrown-error.ts'

const measured = (values: Partial<Measurement> = {}): Measurement => ({
  cpu: 10,
  memory: 30,
  load: 0.5,
  cores: 4,
  latencyMs: 5,
  at: 1000,
  ...values,
})

const node = (
  id: string,
  values: Partial<Candidate> & { os?: string; arch?: string; has?: string[] } = {},
): Candidate => {
  const { os = 'linux', arch = 'x86_64', has = [], ...rest } = values
  return {
    id,
    traits: { os, arch, capabilities: new Set(has), labels: {} },
    priority: 5,
    specialties: new Set(),
    maxTasks: 4,
    running: 0,
    measurement: measured(),
    ...rest,
  }
}

const now = 1000
describe('the router', () => {
  it('picks only nodes that meet the requirements, and names the failed ones', () => {
    const nodes = [node('builder'), node('studio', { os: 'macos', arch: 'arm64' })]
    const error = failure(() => route(nodes, { requires: { os: 'windows' }, now }))
    expect(error.code).toBe('unsupported')
    expect(error.retryable).toBe(false)
    expect(error.message).toBe('No node fits os=windows: builder runs linux; studio runs macos')
  })

  it('picks this computer only when no other node fits', () => {
    const here = node('here', { isLocal: true, has: ['gpu'], priority: 1 })
    const busy = node('busy', { measurement: measured({ cpu: 100, load: 90, memory: 99 }), overloaded: true })
    expect(route([here, busy], { now }).id).toBe('busy')
    expect(route([here, busy], { requires: { capabilities: ['gpu'] }, now }).id).toBe('here')
  })

  it.each([
    [{ os: 'darwin' }, 'studio'],
    [{ os: 'macOS', arch: 'aarch64' }, 'studio'],
    [{ arch: 'amd64' }, 'builder'],
    [{ capabilities: ['Docker'] }, 'builder'],
  ])('knows the other names of %j', (requires, expected) => {
    const nodes = [node('builder', { has: ['docker'] }), node('studio', { os: 'macos', arch: 'arm64' })]
    expect(route(nodes, { requires, now }).id).toBe(expected)
  })

  it('names the missing capability and the unknown system', () => {
    const nodes = [node('a'), { ...node('b'), traits: { ...node('b').traits, os: undefined } }]
    expect(failure(() => route(nodes, { requires: { capabilities: ['tpu'] }, now })).message).toContain(
      'a has no tpu',
    )
    expect(failure(() => route(nodes, { requires: { os: 'plan9' }, now })).message).toContain(
      'b runs an unknown system',
    )
  })

  it.each([
    ['cpu', { cpu: 95 }],
    ['load per core', { load: 12 }],
    ['memory', { memory: 97 }],
    ['latency', { latencyMs: 900 }],
  ])('prefers the node with less %s', (_, busy) => {
    expect(route([node('busy', { measurement: measured(busy) }), node('idle')], { now }).id).toBe('idle')
  })

  it('measures load by core', () => {
    const big = node('big', { measurement: measured({ load: 8, cores: 64 }) })
    const small = node('small', { measurement: measured({ load: 3, cores: 2 }) })
    expect(route([small, big], { now }).id).toBe('big')
  })

  it('counts running tasks against max_tasks and never exceeds it', () => {
    expect(route([node('a', { running: 3 }), node('b', { running: 1 })], { now }).id).toBe('b')
    expect(route([node('a', { running: 3 }), node('b', { running: 1, maxTasks: 1 })], { now }).id).toBe('a')
    const error = failure(() => route([node('a', { running: 4 })], { now }))
    expect(error.code).toBe('unavailable')
    expect(error.retryable).toBe(true)
    expect(error.message).toContain('a runs 4 of 4 tasks')
  })

  it('lets priority and specialties decide between equals', () => {
    expect(route([node('a', { priority: 3 }), node('b', { priority: 1 })], { now }).id).toBe('b')
    const nodes = [node('a'), node('b', { specialties: new Set(['compilation']) })]
    expect(route(nodes, { topics: ['compilation'], now }).id).toBe('b')
  })

  it('does not prefer an overloaded node by its priority', () => {
    const knees = node('knees', {
      priority: 1,
      overloaded: true,
      measurement: measured({ cpu: 99, load: 20 }),
    })
    expect(route([knees, node('idle', { priority: 5 })], { now }).id).toBe('idle')
  })

  it('skips a blocked node, and gives the reason when none is left', () => {
    const blocked = node('a', { blocked: 'is unreachable since 10:00 (no route to host)' })
    expect(route([blocked, node('b')], { now }).id).toBe('b')
    expect(failure(() => route([blocked], { now })).message).toContain(
      'a is unreachable since 10:00 (no route to host)',
    )
  })

  it('trusts an old measurement less than a fresh one', () => {
    const stale = node('stale', { measurement: measured({ cpu: 0, load: 0, memory: 0, at: -100_000 }) })
    const fresh = node('fresh', { measurement: measured({ cpu: 20 }) })
    expect(route([stale, fresh], { now }).id).toBe('fresh')
  })

  it('explains its choice in one sentence', () => {
    const { reason } = route([node('a')], { requires: { os: 'linux' }, now })
    expect(reason).toBe(
      'a fits os=linux and scored best: 10 % cpu, load 0.13 per core, 30 % memory, 5 ms away, 0 of 4 tasks running, priority 5.',
    )
  })

  it('reports an empty inventory', () => {
    expect(failure(() => route([], { now })).hint).toContain('deputy nodes add')
  })

  it('chooses only a node that fits, whatever the numbers', () => {
    const arbitrary = fc.record({
      cpu: fc.float({ min: 0, max: 100, noNaN: true }),
      load: fc.float({ min: 0, max: 500, noNaN: true }),
      running: fc.integer({ min: 0, max: 5 }),
      os: fc.constantFrom('linux', 'macos'),
      blocked: fc.option(fc.constant('is down'), { nil: undefined }),
    })
    fc.assert(
      fc.property(fc.array(arbitrary, { minLength: 1, maxLength: 20 }), specs => {
        const nodes = specs.map(({ cpu, load, ...rest }, i) =>
          node(`n${i}`, { ...rest, measurement: measured({ cpu, load }) }),
        )
        const fit = nodes.filter(n => n.traits.os === 'macos' && !n.blocked && n.running < n.maxTasks)
        if (fit.length === 0) expect(() => route(nodes, { requires: { os: 'macos' }, now })).toThrow(AppError)
        else expect(fit.map(n => n.id)).toContain(route(nodes, { requires: { os: 'macos' }, now }).id)
      }),
    )
  })
})

it('prefers other nodes to one with a full disk', () => {
  const full = node('full', { priority: 1, measurement: measured({ disk: 99 }) })
  const free = node('free', { priority: 9, measurement: measured({ disk: 50 }) })
  expect(route([full, free], { now }).id).toBe('free')
  expect(route([full], { now }).id).toBe('full')
})

describe('a circuit breaker', () => {
  const at = { time: 0 }
  const make = () => {
    at.time = 0
    return createCircuitBreakers({ threshold: 3, openMs: 1000, now: () => at.time })
  }

  it('counts all commands that one lost connection ends as one failure', () => {
    const breakers = make()
    at.time = 100
    for (let session = 0; session < 8; session++) breakers.recordFailure('a', 'cut', { startedAt: 50 })
    expect(breakers.blockedReason('a')).toBeUndefined()
    for (const startedAt of [200, 300]) {
      at.time = startedAt + 50
      for (let session = 0; session < 8; session++) breakers.recordFailure('a', 'cut', { startedAt })
    }
    expect(breakers.blockedReason('a')).toContain('failed 3 times in a row')
  })

  it('allows another trial when one ends without a result', () => {
    const breakers = make()
    for (let i = 0; i < 3; i++) breakers.recordFailure('a', 'x')
    at.time = 1000
    expect(breakers.startTrial('a')).toBe(true)
    expect(breakers.inTrial('a')).toBe(true)
    breakers.endTrial('a')
    expect(breakers.blockedReason('a')).toBeUndefined()
    expect(breakers.startTrial('a')).toBe(true)
  })

  it('closes when the node answers, unless the node itself failed', () => {
    const breakers = make()
    for (let i = 0; i < 3; i++) breakers.recordFailure('a', 'no route')
    breakers.recordReachable('a')
    expect(breakers.blockedReason('a')).toBeUndefined()
    for (let i = 0; i < 3; i++) breakers.recordFailure('b', 'disk full', { cause: 'node' })
    breakers.recordReachable('b')
    expect(breakers.blockedReason('b')).toContain('disk full')
    breakers.recordSuccess('b')
    expect(breakers.blockedReason('b')).toBeUndefined()
  })

  it('opens after consecutive failures and names the last', () => {
    const breakers = make()
    breakers.recordFailure('a', 'timed out')
    breakers.recordFailure('a', 'timed out')
    expect(breakers.blockedReason('a')).toBeUndefined()
    breakers.recordFailure('a', 'no route to host')
    expect(breakers.blockedReason('a')).toBe('failed 3 times in a row (no route to host); next try in 1 s')
    expect(breakers.startTrial('a')).toBe(false)
    expect(breakers.blockedReason('b')).toBeUndefined()
  })

  it('forgets failures after a success', () => {
    const breakers = make()
    breakers.recordFailure('a', 'x')
    breakers.recordFailure('a', 'x')
    breakers.recordSuccess('a')
    breakers.recordFailure('a', 'x')
    expect(breakers.blockedReason('a')).toBeUndefined()
  })

  it('lets exactly one trial through when half-open', () => {
    const breakers = make()
    for (let i = 0; i < 3; i++) breakers.recordFailure('a', 'x')
    at.time = 1000
    expect(breakers.blockedReason('a')).toBeUndefined()
    expect(breakers.startTrial('a')).toBe(true)
    expect(breakers.startTrial('a')).toBe(false)
    expect(breakers.blockedReason('a')).toContain('is being tried')
    breakers.recordSuccess('a')
    expect(breakers.startTrial('a')).toBe(true)
  })

  it('waits twice as long after a failed trial', () => {
    const breakers = make()
    for (let i = 0; i < 3; i++) breakers.recordFailure('a', 'x')
    at.time = 1000
    breakers.startTrial('a')
    breakers.recordFailure('a', 'still down')
    at.time = 2500
    expect(breakers.startTrial('a')).toBe(false)
    at.time = 3000
    expect(breakers.startTrial('a')).toBe(true)
  })
})
