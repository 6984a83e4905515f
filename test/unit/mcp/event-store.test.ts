import { describe, expect, it } from 'vitest'
import { createEventStore } from '../../../src/mcp/event-store.ts'

const message = (n: number, text = '') => ({ jsonrpc: '2.0' as const, id: n, result: { text } })

const replay = async (store: ReturnType<typeof createEventStore>, after: string) => {
  const seen: unknown[] = []
  const stream = await store.replayEventsAfter(after, { send: async (_, each) => void seen.push(each) })
  return { stream, seen }
}

describe('what a session remembers for a client that lost its connection', () => {
  it('is what came after the last thing it saw, on that stream', async () => {
    const store = createEventStore()
    const first = await store.storeEvent('a', message(1))
    await store.storeEvent('b', message(2))
    await store.storeEvent('a', message(3))
    expect(await replay(store, first)).toEqual({ stream: 'a', seen: [message(3)] })
  })

  it('is forgotten from the oldest on when it becomes too much', async () => {
    const store = createEventStore()
    const first = await store.storeEvent('a', message(0))
    for (let n = 1; n <= 8; n++) await store.storeEvent('a', message(n, 'x'.repeat(1_000_000)))
    const { seen } = await replay(store, first)
    expect(seen.map(each => (each as { id: number }).id)).toEqual([5, 6, 7, 8])
  })

  it('is nothing for an id it never gave out', async () => {
    const store = createEventStore()
    await store.storeEvent('a', message(1))
    expect((await replay(store, 'nonsense')).seen).toEqual([])
  })
})
