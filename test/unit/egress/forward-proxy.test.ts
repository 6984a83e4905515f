import { createServer, IncomingMessage, request, type Server } from 'node:http'
import { type AddressInfo, connect, createServer as createTcp, Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { afterEach, describe, expect, it } from 'vitest'
import { createAllowList } from '../../../src/egress/allow-list.ts'
import { forward, tunnel } from '../../../src/egress/forward-proxy.ts'
import { proxyEnvironment } from '../../../src/egress/proxy-environment.ts'
import { createProxyGrant, type ProxyGrant } from '../../../src/egress/proxy-grant.ts'

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

const listen = async (server: Server | ReturnType<typeof createTcp>): Promise<number> => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => server.close())
  return (server.address() as AddressInfo).port
}

const proxy = async (entries: string[], answers: string[][] = [], most = 10) => {
  const asked: string[] = []
  const lookup = async (name: string) => {
    asked.push(name)
    return answers[asked.length - 1] ?? []
  }
  const grant: ProxyGrant = createProxyGrant({ allowed: createAllowList(entries), lookup }, most)
  const server = createServer((incoming, answer) => void forward(grant, incoming, answer))
  server.on('connect', (incoming, client, head) => {
    if (grant.admit(client)) void tunnel(grant, incoming, client, head)
    else client.destroy()
  })
  closers.push(() => grant.end())
  return { port: await listen(server), grant, asked }
}

const get = (port: number, url: string, headers = {}): Promise<{ status: number; text: string }> =>
  new Promise((resolve, reject) => {
    const sent = request({ port, path: url, headers, agent: false }, async (answer: IncomingMessage) => {
      let text = ''
      for await (const chunk of answer) text += chunk
      resolve({ status: answer.statusCode ?? 0, text })
    })
    sent.on('error', reject)
    sent.end()
  })

const dial = (port: number, target: string): Promise<{ line: string; socket: Socket }> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`CONNECT ${target} HTTP/1.1\r\n\r\n`))
    socket.on('error', reject)
    socket.once('data', data => resolve({ line: data.toString().split('\r\n')[0]!, socket }))
    closers.push(() => socket.destroy())
  })

describe('a proxy with a list', () => {
  it.each(['000 X', '099 X'])('survives an answer with the status %s', async status => {
    const origin = await listen(
      createTcp(socket => {
        socket.on('error', () => {})
        socket.once('data', () => socket.end(`HTTP/1.1 ${status}\r\n\r\n`))
      }),
    )
    const { port } = await proxy([`127.0.0.1:${origin}`])
    expect((await get(port, `http://127.0.0.1:${origin}/`)).status).toBe(502)
  })

  it('asks for the name once, and reaches the very address it has checked', async () => {
    const origin = await listen(
      createServer((asked, answer) =>
        answer.end(`${asked.headers.host} ${asked.url} ${asked.headers['proxy-authorization']}`),
      ),
    )
    // A second answer would be the one of an attacker.
    const { port, asked } = await proxy([`app.example:${origin}`, '127.0.0.1'], [['127.0.0.1'], ['10.0.0.1']])
    expect(
      await get(port, `http://app.example:${origin}/a?b=1`, {
        'proxy-authorization': 'Basic eDp5',
        host: 'evil',
      }),
    ).toEqual({ status: 200, text: `app.example:${origin} /a?b=1 undefined` })
    expect(asked).toEqual(['app.example'])
  })

  it('refuses a listed name that leads to a private address, and says which', async () => {
    const { port } = await proxy(['app.example'], [['10.1.2.3'], ['127.0.0.1'], ['::ffff:192.168.0.1']])
    for (const address of ['10.1.2.3', '127.0.0.1', '::ffff:192.168.0.1'])
      expect(await get(port, 'http://app.example/')).toEqual({
        status: 403,
        text: expect.stringContaining(`app.example is ${address}, a private address`),
      })
  })

  it('refuses what is not listed without asking for its name', async () => {
    const { port, asked } = await proxy(['app.example:443'])
    expect(await get(port, 'http://other.example/')).toEqual({
      status: 403,
      text: 'other.example:80 is not in the network list of this job.\n',
    })
    expect((await dial(port, 'app.example:22')).line).toBe('HTTP/1.1 403 Forbidden')
    expect((await dial(port, 'app.example:99999')).line).toBe('HTTP/1.1 400 Bad Request')
    expect(asked).toEqual([])
  })

  it('leaves no connection behind when the client left while it was made', async () => {
    let open = 0
    const origin = await listen(
      createTcp(socket => {
        open++
        socket.on('close', () => open--)
        socket.on('error', () => {})
      }),
    )
    let answer: (addresses: string[]) => void = () => {}
    const grant = createProxyGrant(
      {
        allowed: createAllowList([`app.example:${origin}`, '127.0.0.1']),
        lookup: () => new Promise(resolve => (answer = resolve)),
      },
      1,
    )
    let done: Promise<number> | undefined
    const server = createServer()
    server.on('connect', (incoming, client, head) => {
      grant.admit(client)
      done = tunnel(grant, incoming, client, head)
    })
    const port = await listen(server)
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(`CONNECT app.example:${origin} HTTP/1.1\r\n\r\n`),
    )
    socket.on('error', () => {})
    await expect.poll(() => done !== undefined).toBe(true)
    grant.end()
    answer(['127.0.0.1'])
    expect(await done).toBe(499)
    await expect.poll(() => open).toBe(0)
  })

  it('brings a slow client everything that the other side sent before it closed', async () => {
    const sent = Buffer.alloc(300_000, 'x')
    const origin = await listen(createTcp(socket => void socket.on('error', () => {}).end(sent)))
    const grant = createProxyGrant({ allowed: createAllowList([`127.0.0.1:${origin}`]) }, 1)
    let got = 0
    const client = new Duplex({
      read: () => {},
      write: (chunk: Buffer, _, done) => {
        setTimeout(() => {
          if (!client.destroyed) got += chunk.length
          done()
        }, 20)
      },
    })
    const closed = new Promise(resolve => client.once('finish', resolve).once('close', resolve))
    const incoming = Object.assign(new IncomingMessage(new Socket()), { url: `127.0.0.1:${origin}` })
    expect(await tunnel(grant, incoming, client, Buffer.alloc(0))).toBe(200)
    await closed
    expect(got).toBe('HTTP/1.1 200 Connection established\r\n\r\n'.length + sent.length)
  })

  it('lets so many in at a time, and cuts all of them at the end', async () => {
    const origin = await listen(createTcp(socket => void socket.on('error', () => {}).write('hello')))
    const { port, grant } = await proxy([`127.0.0.1:${origin}`], [], 2)
    const first = await dial(port, `127.0.0.1:${origin}`)
    const second = await dial(port, `127.0.0.1:${origin}`)
    expect([first.line, second.line]).toEqual(Array(2).fill('HTTP/1.1 200 Connection established'))
    await expect(
      Promise.race([
        dial(port, `127.0.0.1:${origin}`),
        new Promise((_, reject) => setTimeout(() => reject(new Error('no answer')), 500)),
      ]),
    ).rejects.toThrow()
    const ended = [first, second].map(({ socket }) => new Promise(resolve => socket.once('close', resolve)))
    grant.end()
    await Promise.all(ended)
    expect(grant.admit(first.socket)).toBe(false)
  })
})

it('programs are told of a proxy in every spelling, and go to their own loopback directly', () => {
  const env = proxyEnvironment('http://u:p@10.0.0.1:8765', ['example.org'])
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'])
    expect(env[name]).toBe('http://u:p@10.0.0.1:8765')
  expect(env.no_proxy).toBe('localhost,127.0.0.1')
  expect(proxyEnvironment('http://x', ['localhost:5432']).no_proxy).toBe('')
})
