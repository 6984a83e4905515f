import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Duplex } from 'node:stream'
import { afterEach, expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { serveSessionSocket } from '../../../src/http/session-socket.ts'

const http = createServer()
afterEach(() => void http.close())

it('closes at once when a program ends without reading its input', { timeout: 20_000 }, async () => {
  const server = new WebSocketServer({ server: http })
  let stop = (): void => {}
  const isWritten = new Promise<void>(resolve => {
    // Never drains, as the pipe of a program that does not read.
    const stream = new Duplex({ read: () => {}, write: () => resolve(), highWaterMark: 1 })
    stop = () => void stream.push(null)
    server.on('connection', socket =>
      serveSessionSocket(socket, { stream, exit: Promise.resolve(3), resize: () => {} }),
    )
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const client = new WebSocket(`ws://127.0.0.1:${(http.address() as AddressInfo).port}`)
  await once(client, 'open')
  client.send(Buffer.alloc(1000))
  await isWritten
  client.send(Buffer.alloc(1000))
  const told = once(client, 'message')
  const closed = once(client, 'close')
  stop()
  expect(String((await told)[0])).toBe('{"type":"exit","code":3}')
  expect((await closed)[0]).toBe(1000)
})
