import type { Duplex } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createConnectionChannel, WINDOW } from '../../../src/runner/channel-connections.ts'

const frame = (kind: string, id: number, value: Buffer | number = 0): Buffer => {
  const header = Buffer.alloc(9, kind)
  header.writeUInt32BE(id, 1)
  header.writeUInt32BE(typeof value === 'number' ? value : value.length, 5)
  return typeof value === 'number' ? header : Buffer.concat([header, value])
}

const open = (most = 4) => {
  const sent: string[] = []
  const streams: Duplex[] = []
  const channel = createConnectionChannel({
    send: data =>
      void sent.push(`${String.fromCharCode(data[0]!)}${data.readUInt32BE(1)} ${data.readUInt32BE(5)}`),
    onReady: () => void sent.push('ready'),
    onConnection: stream => void streams.push(stream),
    most,
  })
  return { channel, sent, streams }
}

describe('the connections of a machine', () => {
  it('are streams, however the frames are cut', async () => {
    const { channel, sent, streams } = open()
    const bytes = Buffer.concat([
      frame('r', 0),
      frame('o', 7),
      frame('d', 7, Buffer.from('hello')),
      frame('e', 7),
    ])
    for (const byte of bytes) channel.receive(Buffer.from([byte]))
    const [stream] = streams
    let got = ''
    stream!.on('data', chunk => (got += chunk))
    await new Promise(resolve => stream!.once('end', resolve))
    expect(got).toBe('hello')
    stream!.end('bye')
    await new Promise(resolve => stream!.once('close', resolve))
    expect(sent.filter(one => !one.startsWith('a'))).toEqual(['ready', 'd7 3', 'e7 0', 'x7 0'])
    expect(sent).toContain('a7 5')
  })

  it('send no more than the other side has room for', async () => {
    const { channel, sent, streams } = open()
    channel.receive(frame('o', 1))
    const written = new Promise(resolve => streams[0]!.write(Buffer.alloc(WINDOW + 10), resolve))
    expect(sent).toEqual([`d1 ${WINDOW}`])
    channel.receive(frame('a', 1, 4))
    expect(sent).toEqual([`d1 ${WINDOW}`, 'd1 4'])
    channel.receive(frame('a', 1, 0xffffffff))
    await written
    expect(sent.at(-1)).toBe('d1 6')
  })

  it('are so many at a time', () => {
    const { channel, sent, streams } = open(2)
    for (const id of [1, 2, 3]) channel.receive(frame('o', id))
    expect(streams.length).toBe(2)
    expect(sent).toEqual(['x3 0'])
    streams[0]!.destroy()
  })

  it.each([
    ['a frame larger than the window', [frame('d', 1, WINDOW + 1)]],
    ['more data than was acknowledged', Array(5).fill(frame('d', 1, Buffer.alloc(WINDOW / 4)))],
    ['a connection twice', [frame('o', 1)]],
    ['an unknown kind', [frame('?', 1)]],
  ])('end with %s', (_, frames: Buffer[]) => {
    const { channel } = open()
    channel.receive(frame('o', 1))
    expect(() => {
      for (const one of frames) channel.receive(one)
    }).toThrow('cannot be read')
  })

  it('survive data after the end, and frames for connections that are closed', async () => {
    const { channel, streams } = open()
    channel.receive(frame('o', 1))
    channel.receive(frame('e', 1))
    channel.receive(frame('d', 1, Buffer.from('late')))
    await expect.poll(() => streams[0]!.destroyed).toBe(true)
    channel.receive(frame('d', 1, Buffer.from('later')))
    channel.receive(frame('a', 9, 5))
    channel.close()
  })
})
