import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseServerEvents, type ServerEvent } from '../../../src/client/parse-sse.ts'

const read = async (...chunks: (string | Uint8Array)[]): Promise<ServerEvent[]> => {
  const source = async function* () {
    for (const chunk of chunks) yield typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk
  }
  const events: ServerEvent[] = []
  for await (const event of parseServerEvents(source())) events.push(event)
  return events
}

describe('reading server-sent events', () => {
  it('joins data lines and keeps the id for the events that follow', async () => {
    expect(await read('id: 7\nevent: output\ndata: a\ndata: b\n\ndata: c\n\n')).toEqual([
      { id: '7', event: 'output', data: 'a\nb' },
      { id: '7', event: 'message', data: 'c' },
    ])
  })

  it('passes over comments, keep-alives and unfinished events', async () => {
    expect(await read(': ping\n\nevent: x\n\ndata: half')).toEqual([])
  })

  it('gives the same events wherever the bytes are cut and whatever the line ends', async () => {
    const text = 'id: 1\r\ndata: grüße €\r\n\r\n: ping\n\nid: 2\rdata: 😀\r\r\nid: 3\ndata:x\n\n'
    const bytes = new TextEncoder().encode(text)
    const whole = await read(bytes)
    expect(whole.map(event => event.data)).toEqual(['grüße €', '😀', 'x'])
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 12 }), async cuts => {
        const points = [0, ...cuts.sort((a, b) => a - b), bytes.length]
        const pieces = points.slice(1).map((end, index) => bytes.slice(points[index], end))
        expect(await read(...pieces)).toEqual(whole)
      }),
    )
  })
})
