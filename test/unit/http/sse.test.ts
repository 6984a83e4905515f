import { expect, it } from 'vitest'
import type { Call } from '../../../src/http/route.ts'
import { message, sse } from '../../../src/http/sse.ts'

const call = (signal?: AbortSignal): Call => ({
  request: new Request('http://localhost/', signal && { signal }),
  env: {},
  params: {},
  path: '/',
  scope: 'full',
  origin: 'test',
})

const never = new AbortController().signal

const readText = async (reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string | undefined> => {
  const { done, value } = await reader.read()
  return done ? undefined : new TextDecoder().decode(value)
}

it('sends keep-alives while nothing happens, then goes on', async () => {
  let tell: (frame: Uint8Array) => void = () => {}
  async function* frames() {
    yield await new Promise<Uint8Array>(resolve => {
      tell = resolve
    })
  }
  const response = sse({ call: call(), closing: never, frames, heartbeatMs: 5 })
  const reader = response.body!.getReader()
  expect(await readText(reader)).toBe('retry: 1000\n\n')
  expect(await readText(reader)).toBe(': keep-alive\n\n')
  expect(await readText(reader)).toBe(': keep-alive\n\n')
  tell(message(7, 'output', { a: 'line\nbreak' }))
  let text = await readText(reader)
  while (text?.startsWith(':')) text = await readText(reader)
  expect(text).toBe('id: 7\nevent: output\ndata: {"a":"line\\nbreak"}\n\n')
  expect(await readText(reader)).toBeUndefined()
})

it('asks for a frame only when the last one was taken', async () => {
  let asked = 0
  async function* frames() {
    for (;;) {
      asked += 1
      yield new Uint8Array([asked])
    }
  }
  const reader = sse({ call: call(), closing: never, frames }).body!.getReader()
  await reader.read()
  await reader.read()
  await reader.read()
  await new Promise(resolve => setImmediate(resolve))
  expect(asked).toBe(2)
  await reader.cancel()
})

it('tells a failure as an event, and ends', async () => {
  async function* frames(): AsyncGenerator<Uint8Array> {
    yield message(1, 'output', {})
    throw new Error('the disk is full')
  }
  const text = await sse({ call: call(), closing: never, frames }).text()
  expect(text).toContain('event: error\ndata: {"error":{"code":"internal","message":"the disk is full"')
})

it('just ends when the daemon closes: the client comes back to the next one', async () => {
  const closing = new AbortController()
  async function* frames(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    yield message(1, 'output', {})
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  }
  const reader = sse({ call: call(), closing: closing.signal, frames }).body!.getReader()
  expect(await readText(reader)).toBe('retry: 1000\n\n')
  expect(await readText(reader)).toBe('id: 1\nevent: output\ndata: {}\n\n')
  const last = readText(reader)
  await new Promise(resolve => setImmediate(resolve))
  closing.abort()
  expect(await last).toBeUndefined()
})

it('lets go of its source when the client leaves', async () => {
  let released = false
  let signalled = false
  async function* frames(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    signal.addEventListener('abort', () => {
      signalled = true
    })
    try {
      for (;;) yield new Uint8Array([1])
    } finally {
      released = true
    }
  }
  const reader = sse({ call: call(), closing: never, frames }).body!.getReader()
  await reader.read()
  await reader.read()
  await reader.cancel()
  expect([signalled, released]).toEqual([true, true])
})
