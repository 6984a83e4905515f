import { expect, it } from 'vitest'
import { createFileReceiver, once } from '../../../src/runner/file-receiver.ts'
import type { WorkspaceSource } from '../../../src/runner/workspace-source.ts'

const contents = new Map(['a', 'b', 'c'].map(name => [name, Buffer.from(name.repeat(8))]))
const SHA256_OF_A = '1f3ce40415a2081fa3eee75fc39fff8e56c22270d1a978a7249b592dcebd20b4'

/** A machine that sends what it is asked for. */
const source = {
  read: async (paths, _, receive) => {
    for (const path of paths) {
      const content = contents.get(path)!
      await receive({ path, type: 'file', size: content.length, sameAs: '' }, once(content))
    }
  },
} as Pick<WorkspaceSource, 'read'> as WorkspaceSource

const receive = async (known?: string) => {
  const receiver = createFileReceiver({
    blobs: {} as Parameters<typeof createFileReceiver>[0]['blobs'],
    jobId: 'j1',
    memoryBytes: 16,
    storeBytes: 0,
    batchBytes: 1000,
  })
  const files = [...contents].map(([path, { length }]) => ({ path, size: length }))
  await receiver.fetch(source, files as never, () => ({ into: 'memory', known }))
  const held = await Promise.all(
    [...receiver.received].map(async ([path, file]) => [path, String((await file.content?.()) ?? '')]),
  )
  return Object.fromEntries(held)
}

it('holds contents up to its memory, and only hashes the rest', async () => {
  expect(await receive()).toEqual({ a: 'a'.repeat(8), b: 'b'.repeat(8), c: '' })
})

it('needs no memory for content that did not change', async () => {
  expect(await receive(SHA256_OF_A)).toEqual({ a: '', b: 'b'.repeat(8), c: 'c'.repeat(8) })
})
