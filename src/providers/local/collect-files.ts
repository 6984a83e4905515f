import { createHash, randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { extract, type Header } from 'tar-stream'
import type { ListedFile } from '../../files/file-listing.ts'
import type { SkippedArtifact } from '../../jobs/job.ts'
import type { CollectedFile } from '../../runner/run-result.ts'
import type { LocalMachine } from './local-machine.ts'
import { packScript } from './runner-script.ts'

export interface CollectedFiles {
  readonly files: readonly CollectedFile[]
  readonly skipped: readonly SkippedArtifact[]
}

export interface CollectFilesOptions {
  readonly machine: LocalMachine
  /** Files to collect, from a listing of this machine. */
  readonly wanted: readonly ListedFile[]
  readonly dir: string
  /** Name of the directory below `dir` for the contents. */
  readonly into: string
  readonly signal: AbortSignal
}

/**
 * Copies files out of a machine as a tar stream. The stream is untrusted: accepts only requested names, once each,
 * only regular files, and no more bytes than listed.
 */
export const collectFiles = async ({
  machine,
  wanted,
  dir,
  into,
  signal,
}: CollectFilesOptions): Promise<CollectedFiles> => {
  const expected = new Map(wanted.map(file => [file.path, file]))
  const files: CollectedFile[] = []
  const skipped: SkippedArtifact[] = []
  if (expected.size === 0) return { files, skipped }
  await mkdir(join(dir, into), { recursive: true, mode: 0o700 })

  const names = Buffer.from(wanted.map(file => `./${file.path}\0`).join(''))
  // tar pads its stream and a kept machine never closes it: an entry with a random name marks the end.
  const endName = `end-${randomBytes(16).toString('hex')}`
  const lastEntry = endEntry(endName)
  const tar = extract()
  const stop = () =>
    tar.destroy(signal.reason instanceof Error ? signal.reason : new Error('collecting was stopped'))
  const onClose = () => tar.destroy(new Error('the machine ended while its files were collected'))
  signal.addEventListener('abort', stop, { once: true })
  machine.dataOut.once('close', onClose)
  machine.send(packScript(machine.plan.directory, names.length, lastEntry.length))
  machine.dataIn.write(names)
  machine.dataIn.write(lastEntry)
  machine.dataOut.pipe(tar)
  try {
    if (signal.aborted) stop()
    for await (const entry of tar) {
      if (entry.header.name === endName) break
      const path = entry.header.name.replace(/^\.\//, '')
      const file = expected.get(path)
      if (file === undefined || entry.header.type !== 'file') {
        if (file !== undefined)
          skipped.push({ path, reason: `it is a ${entry.header.type ?? 'thing'} now, not a file` })
        expected.delete(path)
        entry.resume()
        continue
      }
      expected.delete(path)
      const problem = sizeProblem(entry.header, file)
      if (problem !== undefined) {
        skipped.push({ path, reason: problem })
        entry.resume()
        continue
      }
      files.push({ path, ...(await store(entry, dir, join(into, String(files.length)))) })
    }
  } finally {
    signal.removeEventListener('abort', stop)
    machine.dataOut.off('close', onClose)
    machine.dataOut.unpipe(tar)
    tar.destroy()
  }
  for (const path of expected.keys()) skipped.push({ path, reason: 'it could not be read in the workspace' })
  return { files, skipped }
}

/** The limits were checked with the listed size, so a file that has grown since is skipped. */
const sizeProblem = (header: Header, file: ListedFile): string | undefined =>
  (header.size ?? 0) > file.size ? 'it grew while it was collected' : undefined

const store = async (
  entry: AsyncIterable<unknown>,
  dir: string,
  file: string,
): Promise<{ sha256: string; size: number; file: string }> => {
  const hash = createHash('sha256')
  let size = 0
  const meter = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      hash.update(chunk)
      size += chunk.length
      done(null, chunk)
    },
  })
  const path = join(dir, file)
  try {
    await pipeline(entry, meter, createWriteStream(path, { flags: 'wx', mode: 0o600 }))
  } catch (error) {
    await rm(path, { force: true })
    throw error
  }
  return { sha256: hash.digest('hex'), size, file }
}

/** Builds the tar header of an empty file. */
const endEntry = (name: string): Buffer => {
  const block = Buffer.alloc(512)
  block.write(name, 0)
  block.write('0000644\0', 100)
  block.write('0000000\0', 108)
  block.write('0000000\0', 116)
  block.write('00000000000\0', 124)
  block.write('00000000000\0', 136)
  block.write('        ', 148)
  block.write('0', 156)
  block.write('ustar\x0000', 257)
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return block
}
