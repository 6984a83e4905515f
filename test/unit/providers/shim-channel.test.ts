import { getEventListeners } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { shimHost } from '../../../src/providers/local/shim-channel.ts'
import type { ShimEvent, ShimLink } from '../../../src/providers/local/shim-link.ts'
import { openSpool } from '../../../src/providers/local/spool.ts'
import type { Answer, Request } from '../../../src/runner/frames.ts'

const PATIENCE = { timeout: 30_000 }
const RUN = 'm1.j1'
const EXIT = { kind: 'exit', run: RUN, code: 0, how: 'exit', startedAt: 1, endedAt: 2 } as const
const FOLLOW = { kind: 'follow', run: RUN, from: 0 } as const

/** The connection to a shim that says what the test says. */
const fakeLink = () => {
  const listeners = new Set<(event: ShimEvent) => void>()
  const link: ShimLink = {
    ...{ id: 's1', pid: 1, uid: null, capacity: 16, build: 'b1', retiring: false, idleSince: 0 },
    ...{ machines: new Map([['m1', RUN]]), closed: false },
    send: () => {},
    listen: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    disconnect: () => {},
  }
  const say = (event: ShimEvent): void => {
    for (const listener of [...listeners]) listener(event)
  }
  return { link, listeners, say }
}

describe('a follower of a local run', () => {
  let dir: string
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'deputy-follower-'))
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))

  const follow = async (request: Request, link: ShimLink | undefined, signal: AbortSignal) => {
    const answers: Answer[] = []
    const host = shimHost({ dir, link, head: 1000, problem: () => undefined })
    const channel = await host.connect(signal)
    const exchanged = channel.exchange([request], { signal, onAnswer: answer => void answers.push(answer) })
    return { answers, exchanged, kinds: () => answers.map(({ kind }) => kind) }
  }
  /** Time for a follower to make a mistake. What is expected does not depend on it. */
  const aMoment = () => delay(30)

  it('reports the start once, however often it hears of it', async () => {
    const { link, say } = fakeLink()
    writeFileSync(join(dir, 'started'), '5')
    const spool = openSpool(dir, { head: 1000, tail: 1000 })
    const { kinds, exchanged, answers } = await follow(FOLLOW, link, new AbortController().signal)
    const outputs = () => answers.filter(({ kind }) => kind === 'output').length
    for (const count of [1, 2, 3]) {
      spool.write('stdout', Buffer.from('a'), 1)
      say({ kind: 'started', run: RUN, fresh: true, at: 5 })
      say({ kind: 'logged', run: RUN })
      await vi.waitFor(() => expect(outputs()).toBe(count), PATIENCE)
    }
    say(EXIT)
    await exchanged
    spool.close()
    expect(kinds().filter(kind => kind === 'started')).toEqual(['started'])
    expect(answers.find(({ kind }) => kind === 'started')).toMatchObject({ fresh: false, at: 5 })
  })

  it('reports the start before the output, although it hears of the output first', async () => {
    const { link, say } = fakeLink()
    writeFileSync(join(dir, 'started'), '5')
    const spool = openSpool(dir, { head: 1000, tail: 1000 })
    spool.write('stdout', Buffer.from('a'), 1)
    spool.write('progress', Buffer.from('half'), 1)
    spool.close()
    const start = { kind: 'start', run: RUN, workspace: 'm1', from: 0 } as Request
    const { kinds, exchanged } = await follow(start, link, new AbortController().signal)
    await vi.waitFor(() => expect(kinds()).toEqual(['started', 'output', 'progress']), PATIENCE)
    say({ kind: 'started', run: RUN, fresh: true, at: 5 })
    say(EXIT)
    await exchanged
    expect(kinds()).toEqual(['started', 'output', 'progress', 'exit'])
  })

  it('stays with a command that prints nothing until it ends', async () => {
    const { link, say } = fakeLink()
    writeFileSync(join(dir, 'started'), '5')
    const spool = openSpool(dir, { head: 1000, tail: 1000 })
    const { kinds, exchanged } = await follow(FOLLOW, link, new AbortController().signal)
    await vi.waitFor(() => expect(kinds()).toEqual(['started']), PATIENCE)
    await aMoment()
    say({ kind: 'heartbeat', run: RUN })
    await aMoment()
    spool.write('stdout', Buffer.from('at last'), 1)
    spool.close()
    say({ kind: 'logged', run: RUN })
    say(EXIT)
    await exchanged
    expect(kinds()).toEqual(['started', 'heartbeat', 'heartbeat', 'output', 'exit'])
  })

  it('stays when another run of the shim ends', async () => {
    const { link, say } = fakeLink()
    const { answers, exchanged } = await follow(FOLLOW, link, new AbortController().signal)
    say({ ...EXIT, run: 'm2.j2' })
    await aMoment()
    say(EXIT)
    await exchanged
    expect(answers).toEqual([EXIT])
  })

  it('leaves no listener behind when the run ends', async () => {
    const { link, say, listeners } = fakeLink()
    const { signal } = new AbortController()
    const { exchanged } = await follow(FOLLOW, link, signal)
    expect(listeners.size).toBe(1)
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    say(EXIT)
    await exchanged
    expect(listeners.size).toBe(0)
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  })

  it('leaves no listener behind when the daemon detaches', async () => {
    const { link, listeners } = fakeLink()
    const detach = new AbortController()
    const { exchanged } = await follow(FOLLOW, link, detach.signal)
    detach.abort(new Error('detached'))
    await expect(exchanged).rejects.toThrow('detached')
    expect(listeners.size).toBe(0)
    expect(getEventListeners(detach.signal, 'abort')).toHaveLength(0)
  })
})

describe('a start that a shim answers', () => {
  const START: Request = {
    ...{ kind: 'start', run: RUN, workspace: 'm1', from: 0, timeoutSeconds: 60, graceTenths: 10 },
    ...{ keepHead: 1000, keepTail: 1000, context: '', env: [], argv: ['true'] },
  }
  const REFUSED = { kind: 'refused', run: RUN, reason: 'it is full' } as const

  it.each([
    [
      'may be tried on another shim',
      { ...REFUSED, fault: false, error: { code: 'unavailable', message: 'full' } },
      true,
    ],
    [
      'is over when the machine is at fault',
      { ...REFUSED, fault: true, error: { code: 'unavailable', message: 'full' } },
      false,
    ],
    [
      'is over for another reason',
      { ...REFUSED, fault: false, error: { code: 'invalid', message: 'no' } },
      false,
    ],
    ['is over when it has run', EXIT, false],
  ] as const)('%s', async (_, answer, isRefused) => {
    const dir = mkdtempSync(join(tmpdir(), 'deputy-start-'))
    const { link, say } = fakeLink()
    const host = shimHost({ dir, link, head: 1000, problem: () => undefined })
    const { signal } = new AbortController()
    const channel = await host.connect(signal)
    const exchanged = channel.exchange([START], { signal, onAnswer: () => {} })
    say(answer as ShimEvent)
    await exchanged
    expect({ isSent: host.isSent, isRefused: host.isRefused }).toEqual({ isSent: true, isRefused })
    rmSync(dir, { recursive: true })
  })
})
