import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Fetcher, type Listener, listenLoopback, listenUnix } from '../../../src/http/listen.ts'
import { send } from '../../support/http/send.ts'

let directory: string
const listeners: Listener[] = []
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'deputy-listen-'))
})
afterEach(async () => {
  await Promise.all(listeners.splice(0).map(listener => listener.close(100)))
  rmSync(directory, { recursive: true, force: true })
})

const hello: Fetcher = { fetch: (_, env) => new Response(`hello on ${env.listener}`) }

const keep = <T extends Listener>(listener: T): T => {
  listeners.push(listener)
  return listener
}

const busyPort = async (): Promise<{ port: number; close(): void }> => {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('no address')
  return { port: address.port, close: () => server.close() }
}

describe('on TCP', () => {
  it('takes the port that is wanted', async () => {
    const busy = await busyPort()
    busy.close()
    const listener = keep(await listenLoopback(hello, { host: '127.0.0.1', port: busy.port }))
    expect(listener).toMatchObject({
      port: busy.port,
      url: `http://127.0.0.1:${busy.port}`,
      moved: undefined,
    })
    expect((await send({ port: listener.port }, '/')).text).toBe('hello on tcp')
  })

  it('moves to a free port when it is busy, and reports that', async () => {
    const busy = await busyPort()
    const listener = keep(await listenLoopback(hello, { host: '127.0.0.1', port: busy.port }))
    busy.close()
    expect(listener.moved).toEqual({ wanted: busy.port, reason: 'in use' })
    expect(listener.port).not.toBe(busy.port)
    expect((await send({ port: listener.port }, '/')).status).toBe(200)
  })

  it('fails for an address that this computer does not have', async () => {
    await expect(listenLoopback(hello, { host: '203.0.113.7', port: 0 })).rejects.toThrow(/EADDRNOTAVAIL/)
  })
})

describe('on a Unix socket', () => {
  const socketPath = () => join(directory, 'run', 'deputy.sock')

  it('is reachable for its owner alone', async () => {
    keep(await listenUnix(hello, socketPath()))
    expect(statSync(join(directory, 'run')).mode & 0o777).toBe(0o700)
    expect(statSync(socketPath()).mode & 0o777).toBe(0o600)
    expect((await send({ socketPath: socketPath() }, '/')).text).toBe('hello on socket')
  })

  it('closes a directory that was open to others', async () => {
    mkdirSync(join(directory, 'run'), { mode: 0o755 })
    keep(await listenUnix(hello, socketPath()))
    expect(statSync(join(directory, 'run')).mode & 0o777).toBe(0o700)
  })

  it('takes the place of a socket that a killed daemon left behind', async () => {
    mkdirSync(join(directory, 'run'))
    writeFileSync(socketPath(), '')
    keep(await listenUnix(hello, socketPath()))
    expect((await send({ socketPath: socketPath() }, '/')).status).toBe(200)
  })

  it('never takes the place of a daemon that lives', async () => {
    keep(await listenUnix(hello, socketPath()))
    await expect(listenUnix(hello, socketPath())).rejects.toMatchObject({ code: 'conflict' })
    expect((await send({ socketPath: socketPath() }, '/')).text).toBe('hello on socket')
  })

  it.skipIf(process.getuid?.() !== 0)('refuses a directory of somebody else', async () => {
    const { chownSync } = await import('node:fs')
    mkdirSync(join(directory, 'run'))
    chownSync(join(directory, 'run'), 65_534, 65_534)
    await expect(listenUnix(hello, socketPath())).rejects.toMatchObject({ code: 'denied' })
  })

  it('passes an upgraded connection to its handler, with the bytes already received', async () => {
    const listener = await listenUnix(hello, socketPath(), {
      onUpgrade: (incoming, socket, head) => {
        socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: deputy-mcp\r\nConnection: Upgrade\r\n\r\n')
        socket.unshift(head)
        socket.write(`${incoming.url} ${incoming.headers['x-deputy-version']}\n`)
        socket.on('data', chunk => socket.write(chunk))
      },
    })
    keep(listener)
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(socketPath())
      let text = ''
      socket.setEncoding('utf8')
      socket.on('data', chunk => {
        text += chunk
        if (text.endsWith('echo\n')) resolve(text)
      })
      socket.on('error', reject)
      socket.write(
        'GET /mcp/stdio HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: deputy-mcp\r\nx-deputy-version: 9\r\n\r\necho\n',
      )
    })
    expect(answer).toContain('101 Switching Protocols')
    expect(answer).toContain('/mcp/stdio 9\n')
    // The taken connection does not keep the daemon from closing.
    await listener.close(50)
  })
})

describe('closing', () => {
  it('lets a request finish, takes no new one, and removes the socket', async () => {
    let answer: (response: Response) => void = () => {}
    let arrived: () => void = () => {}
    const inside = new Promise<void>(resolve => {
      arrived = resolve
    })
    const slow: Fetcher = {
      fetch: () => {
        arrived()
        return new Promise<Response>(resolve => {
          answer = resolve
        })
      },
    }
    const path = join(directory, 'run', 'deputy.sock')
    const listener = await listenUnix(slow, path)
    const asked = send({ socketPath: path }, '/')
    await inside
    const closed = listener.close(10_000)
    await expect(send({ socketPath: path }, '/')).rejects.toThrow()
    answer(new Response('finished'))
    expect((await asked).text).toBe('finished')
    await closed
    expect(existsSync(path)).toBe(false)
  })

  it('does not wait for a kept connection, and cuts what is not done at the deadline', async () => {
    const never: Fetcher = {
      fetch: ({ url }) => (url.endsWith('/now') ? new Response('now') : new Promise<Response>(() => {})),
    }
    const listener = await listenLoopback(never, { host: '127.0.0.1', port: 0 })
    const kept = connect(listener.port, '127.0.0.1')
    kept.write('GET /now HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await new Promise(resolve => kept.once('data', resolve))
    const hanging = send({ port: listener.port }, '/never')
    const cut = expect(hanging).rejects.toThrow()
    await new Promise<void>((resolve, reject) => {
      const probe = request(
        { port: listener.port, host: '127.0.0.1', path: '/now', agent: false },
        response => {
          response.resume()
          resolve()
        },
      )
      probe.on('error', reject)
      probe.end()
    })
    const begin = performance.now()
    await Promise.all([listener.close(200), listener.close(200)])
    expect(performance.now() - begin).toBeLessThan(20_000)
    await cut
  })
})
