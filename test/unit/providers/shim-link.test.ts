import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { connectShim } from '../../../src/providers/local/shim-link.ts'
import { encodeAnswer } from '../../../src/runner/codec.ts'

/** Connects to a process that answers every request with this text. */
const connectTo = async (answer: string): ReturnType<typeof connectShim> => {
  const dir = mkdtempSync(join(tmpdir(), 'deputy-shim-'))
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.once('data', () => socket.write(answer))
  })
  await new Promise<void>(resolve => server.listen(join(dir, 's'), resolve))
  try {
    const link = await connectShim(join(dir, 's'))
    link.disconnect()
    return link
  } finally {
    server.close()
    rmSync(dir, { recursive: true })
  }
}

const shim = { id: 's1', pid: 7, uid: null, capacity: 16, build: 'b1', retiring: false, machines: [] }
const hello = { kind: 'hello', mark: 'shim', boot: '-', shim } as const

describe('a shim of another version', () => {
  it.each([
    ['{"type":"hello","version":1,"id":"s1"}\n', 'It was started by an older Deputy'],
    [encodeAnswer({ ...hello, version: 9, oldest: 9 }), 'upgrade the daemon'],
    [encodeAnswer({ ...hello, version: 0, oldest: 0 }), 'upgrade the process that holds jobs'],
    [encodeAnswer({ kind: 'failed', reason: 'it is too old' }), 'it is too old'],
    ['hello version=1\n', 'cannot be read'],
  ])('is refused with a sentence: %j', async (answer, sentence) => {
    await expect(connectTo(answer)).rejects.toThrow(sentence)
  })

  it('is known to hold one machine when it does not say how many it can hold', async () => {
    const old = `hello version=1 oldest=1 mark=shim boot=- 'shim={"id":"s1","pid":7,"uid":null,"ready":true,"machines":[{"workspace":"m1","run":"m1.j1"}]}'\n`
    const link = await connectTo(`${old}idle ready=1\n`)
    expect(link).toMatchObject({ capacity: 1, build: '', retiring: false })
    expect([...link.machines]).toEqual([['m1', 'm1.j1']])
  })

  it('is used when it still understands this one', async () => {
    expect(await connectTo(encodeAnswer({ ...hello, version: 9, oldest: 1 }))).toMatchObject({ id: 's1' })
  })
})
