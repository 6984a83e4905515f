import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openGuestLink } from '../../../../src/providers/microvm/guest-link.ts'
import { encodeFrame, NOTHING, type SentKind } from '../../../../src/providers/microvm/link-frames.ts'
import { runInGuest } from '../../../../src/providers/microvm/run-in-guest.ts'

let directory: string
let server: Server
let path: string
const never = new AbortController().signal

/** What the agent of a VM sends. */
const told = (kind: string, id: number, value: Buffer | number = 0): Buffer =>
  encodeFrame(kind as SentKind, id, value)

interface Order {
  readonly kind: string
  readonly id: number
  readonly data: Buffer
}

/** An agent that answers each frame by a function. `before` is what an earlier connection has left unread. */
const serve = (answer: (order: Order, socket: Socket) => void, before = Buffer.alloc(0)): Promise<void> => {
  server.on('connection', socket => {
    let held = Buffer.alloc(0)
    socket.on('error', () => undefined)
    socket.on('data', chunk => {
      held = Buffer.concat([held, chunk])
      for (;;) {
        const skipped = held.findIndex(byte => byte !== 0)
        held = held.subarray(skipped < 0 ? held.length : skipped)
        if (held.length < 9) return
        const kind = String.fromCharCode(held[0]!)
        const length = 'SnNdc'.includes(kind) ? held.readUInt32BE(5) : 0
        if (held.length < 9 + length) return
        const order = { kind, id: held.readUInt32BE(1), data: held.subarray(9, 9 + length) }
        held = held.subarray(9 + length)
        if (kind === 'S') socket.write(Buffer.concat([before, told('S', 0, order.data)]))
        else answer(order, socket)
      }
    })
  })
  return new Promise(resolve => server.listen(path, resolve))
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'deputy-link-'))
  path = join(directory, 'agent.sock')
  server = createServer()
})
afterEach(() => {
  server.close()
  rmSync(directory, { recursive: true, force: true })
})

describe('the connection to a VM', () => {
  it('runs programs side by side, each with its streams and its status', async () => {
    await serve((order, socket) => {
      if (order.kind !== 'n') return
      const [, ...argv] = order.data.toString().split('\0')
      socket.write(told('d', order.id, Buffer.from(`out of ${argv[0]}`)))
      socket.write(told('s', order.id, Buffer.from('complaint')))
      socket.write(told('x', order.id, order.id + 6))
    })
    const link = await openGuestLink(path, never)
    const run = async (name: string) => {
      let said = ''
      const { code, stderr } = await runInGuest(link, {
        argv: [name],
        input: '',
        onStdout: chunk => {
          said += chunk
          return undefined
        },
        signal: never,
      })
      return [code, said, stderr]
    }
    expect(await Promise.all([run('one'), run('two')])).toEqual([
      [7, 'out of one', 'complaint'],
      [8, 'out of two', 'complaint'],
    ])
    link.close()
    await link.closed
  })

  it('skips what an earlier connection has left, in the middle of a frame', async () => {
    const stale = Buffer.concat([told('d', 1, Buffer.alloc(5000, 'x')).subarray(100), told('x', 1, 3)])
    await serve((order, socket) => void (order.kind === 'n' && socket.write(told('x', order.id, 5))), stale)
    const link = await openGuestLink(path, never)
    expect(await runInGuest(link, { argv: ['x'], input: '', signal: never })).toEqual({ code: 5, stderr: '' })
    link.close()
  })

  it('completes any frame that was cut before: the filler is longer than the longest one', () => {
    const longest = encodeFrame('d', 0xffffffff, Buffer.alloc(65_536))
    expect(NOTHING.length).toBeGreaterThanOrEqual(longest.length)
    expect(NOTHING.every(byte => byte === 0)).toBe(true)
  })

  it('sends no more than the program takes', async () => {
    let received = 0
    let taken = 0
    let most = 0
    await serve((order, socket) => {
      if (order.kind === 'd') {
        received += order.data.length
        most = Math.max(most, received - taken)
        setImmediate(() => {
          taken += order.data.length
          socket.write(told('a', order.id, order.data.length))
        })
      } else if (order.kind === 'e') socket.write(told('x', order.id, 0))
    })
    const link = await openGuestLink(path, never)
    const input = 'typed\n'.repeat(300_000)
    expect((await runInGuest(link, { argv: ['cat'], input, signal: never })).code).toBe(0)
    expect(received).toBe(input.length)
    expect(most).toBeLessThanOrEqual(262_144)
    link.close()
  })

  it('fails what runs when it is cut, and what is started afterwards', async () => {
    await serve((order, socket) => void (order.kind === 'n' && socket.destroy()))
    const link = await openGuestLink(path, never)
    const cut = { code: 'unavailable', message: 'The connection to the VM was cut.' }
    await expect(runInGuest(link, { argv: ['x'], input: '', signal: never })).rejects.toMatchObject(cut)
    await link.closed
    await expect(runInGuest(link, { argv: ['x'], input: '', signal: never })).rejects.toMatchObject(cut)
  })

  it('is cut when the VM sends what no agent sends', async () => {
    await serve((order, socket) => void (order.kind === 'n' && socket.write('garbage from the job')))
    const link = await openGuestLink(path, never)
    await expect(runInGuest(link, { argv: ['x'], input: '', signal: never })).rejects.toMatchObject({
      code: 'unavailable',
    })
    await link.closed
  })

  it('gives up waiting for a program when it is told to', async () => {
    const kinds: string[] = []
    await serve(order => void kinds.push(order.kind))
    const link = await openGuestLink(path, never)
    const stop = new AbortController()
    const running = runInGuest(link, { argv: ['sleep'], input: '', signal: stop.signal })
    stop.abort(new Error('enough of it'))
    await expect(running).rejects.toThrow('enough of it')
    const late = runInGuest(link, { argv: ['sleep'], input: '', signal: never, timeoutMs: 10 })
    await expect(late).rejects.toMatchObject({ code: 'timeout' })
    link.close()
  })

  it('tells a VM of a snapshot the time and a seed, and waits until they count', async () => {
    const orders: Order[] = []
    await serve((order, socket) => {
      orders.push(order)
      if (orders.length === 1) socket.write(told('c', order.id))
      else socket.destroy()
    })
    const link = await openGuestLink(path, never)
    await link.renew(1_700_000_000_250, Buffer.from('seed'))
    const [order] = orders
    expect([order?.kind, order?.data.readUInt32BE(0), order?.data.readUInt32BE(4)]).toEqual([
      'c',
      1_700_000_000,
      250_000,
    ])
    expect(order?.data.subarray(8).toString()).toBe('seed')
    await expect(link.renew(0, Buffer.from('seed'))).rejects.toThrow('cut')
    await expect(link.renew(0, Buffer.from('seed'))).rejects.toThrow('cut')
  })

  it('says when nothing listens', async () => {
    await expect(openGuestLink(path, never)).rejects.toMatchObject({ code: 'unavailable' })
  })

  it('refuses arguments that do not fit into a frame', async () => {
    await serve(() => undefined)
    const link = await openGuestLink(path, never)
    expect(() => link.run({ argv: ['x'.repeat(70_000)], env: {} })).toThrow('bytes')
    link.close()
  })
})
