import { randomBytes } from 'node:crypto'
import type { Readable } from 'node:stream'
import { readListing } from '../../files/file-listing.ts'
import { readTarFiles } from '../../runner/tar-files.ts'
import type { WorkspaceSource } from '../../runner/workspace-source.ts'
import type { LocalMachine } from './local-machine.ts'
import { listScript, packScript } from './runner-script.ts'

/** The workspace of a machine of this shim. */
export const machineSource = (machine: LocalMachine, signal: AbortSignal): WorkspaceSource => ({
  list: isWanted => {
    machine.send(listScript(machine.plan.directory))
    return readListing(machine.dataOut, signal, isWanted)
  },
  read: async (paths, limit, visit) => {
    if (paths.length === 0) return
    const names = Buffer.from(paths.map(path => `./${path}\0`).join(''))
    // A kept machine never closes the stream: a random mark ends the tar.
    const mark = randomBytes(MARK_BYTES)
    machine.send(packScript(machine.plan.directory, names.length, mark.length))
    machine.dataIn.write(names)
    machine.dataIn.write(mark)
    await readTarFiles(untilMark(machine.dataOut, mark, signal), limit, visit)
  },
})

const MARK_BYTES = 32

/** The bytes of a stream before the mark. The stream stays open. */
async function* untilMark(source: Readable, mark: Buffer, signal: AbortSignal): AsyncGenerator<Buffer> {
  let held = Buffer.alloc(0)
  for await (const chunk of chunksOf(source, signal)) {
    held = Buffer.concat([held, chunk])
    const end = held.indexOf(mark)
    if (end !== -1) {
      if (end > 0) yield held.subarray(0, end)
      return
    }
    const sure = held.length - (mark.length - 1)
    if (sure <= 0) continue
    yield held.subarray(0, sure)
    held = held.subarray(sure)
  }
  throw new Error('the machine ended while its files were collected')
}

/** Reads a stream that stays open, until the signal is aborted. */
async function* chunksOf(source: Readable, signal: AbortSignal): AsyncGenerator<Buffer> {
  const chunks: AsyncIterator<Buffer> = source.iterator({ destroyOnReturn: false })
  let onAbort = (): void => {}
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason)
  })
  aborted.catch(() => {}) // Nobody may wait for the next chunk.
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    for (;;) {
      signal.throwIfAborted()
      const next = await Promise.race([chunks.next(), aborted])
      if (next.done) return
      yield next.value
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    void chunks.return?.()
  }
}
