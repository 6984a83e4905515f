import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openWays } from '../../../support/pve/guests/qemu/passages.ts'

/** What somebody hears who comes through a passage. */
const heard = (socket: string): Promise<string> =>
  new Promise(resolve => {
    let words = ''
    const client = connect(socket)
    client.on('data', chunk => {
      words += chunk
    })
    client.on('error', () => {})
    client.on('close', () => resolve(words))
  })

it('a passage asks at each connection, and ends with its machine', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'ways-'))
  const server = createServer(socket => socket.end('welcome'))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const target = { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
  const guest = { host: '10.0.2.101', port: 80 }
  let open = true
  const asked: unknown[] = []
  const ways = await openWays([{ guest, target }], {
    directory,
    mayConnect: destination => {
      asked.push(destination)
      return open
    },
  })
  const { socket } = ways.list[0]!
  expect(await heard(socket)).toBe('welcome')
  open = false
  expect(await heard(socket)).toBe('')
  expect(asked).toEqual([guest, guest])
  open = true
  ways.close()
  expect(await heard(socket)).toBe('')
  server.close()
  rmSync(directory, { recursive: true, force: true })
})
