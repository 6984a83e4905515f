import { readFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, join, posix, resolve } from 'node:path'
import type { Duplex } from 'node:stream'
import { compiledFile } from '../files/compiled-file.ts'
import { openPath } from '../files/pack-path.ts'
import { type Unpacked, unpackReceived } from '../files/unpack-received.ts'
import { AppError } from '../jobs/errors.ts'
import { isGitInternal } from '../jobs/paths.ts'
import type { Client } from './daemon-client.ts'
import { withMachine } from './hold-machine.ts'

export interface CopyOptions {
  readonly machineId: string
  /** A path of this computer. */
  readonly local: string
  /** A path in the machine, relative to the workspace. */
  readonly remote: string
  readonly signal?: AbortSignal | undefined
}

/** Copies a file or a directory into a machine. An existing directory there gets it under its own name. */
export const uploadPath = async (client: Client, options: CopyOptions): Promise<void> => {
  const { machineId, local, remote, signal } = options
  refuseGit(remote)
  const pack = await openPath(local)
  await withMachine(client, machineId, 'copy files', async jobId => {
    const { stream, exit } = await client.openSession(jobId, program('receive', remote), signal)
    try {
      const { line, rest } = await readLine(stream)
      if (line !== 'directory' && line !== 'new') throw failed(remote, line)
      const said = lastText(rest)
      await write(stream, pack(basename(line === 'new' ? remote : resolve(local))))
      const message = await said
      const code = await exit
      if (code !== 0) throw failed(remote, message || `tar ended with exit status ${code}`)
    } finally {
      stream.destroy()
    }
  })
}

/** Copies a file or a directory of a machine to this computer. An existing directory gets it under its own name. */
export const downloadPath = async (
  client: Client,
  { machineId, local, remote, force = false, signal }: CopyOptions & { readonly force?: boolean },
): Promise<Unpacked> => {
  const name = posix.basename(posix.normalize(`./${remote}`))
  const isDirectory = local.endsWith('/') || (await stat(local).catch(() => undefined))?.isDirectory()
  const target = isDirectory && !['', '.', '..'].includes(name) ? join(local, name) : local
  refuseGit(target)
  return withMachine(client, machineId, 'copy files', async jobId => {
    const { stream, exit } = await client.openSession(jobId, program('send', remote), signal)
    try {
      const { line, rest } = await readLine(stream)
      if (line === 'missing')
        throw new AppError('not_found', `The machine has no file or directory '${remote}'.`)
      if (line !== 'directory' && line !== 'file') throw failed(remote, line)
      const unpacked = await unpackReceived(rest, { target, isDirectory: line === 'directory', force })
      const code = await exit
      if (code !== 0) throw failed(remote, `tar ended with exit status ${code}, files may be missing`)
      return unpacked
    } finally {
      stream.destroy()
    }
  })
}

const program = (name: 'send' | 'receive', path: string) => ({
  argv: ['sh', '-c', readFileSync(compiledFile(`client/program/${name}.sh`), 'utf8'), name, path],
  env: {},
})

/** The next git command would run what is written there. */
const refuseGit = (path: string): void => {
  if (isGitInternal(path)) throw new AppError('denied', `'${path}' is among git's own files.`)
}

const failed = (path: string, reason: string): AppError =>
  new AppError('unavailable', `The copy of '${path}' failed: ${reason || 'the machine has ended'}.`, {
    hint: 'The machine needs sh and tar, and the user of the job needs the rights.',
  })

/** Waits while the program does not read. A program that has ended takes everything. */
const write = async (stream: Duplex, source: AsyncIterable<Uint8Array>): Promise<void> => {
  for await (const chunk of source) {
    if (stream.destroyed) return
    if (stream.write(chunk)) continue
    await new Promise<void>(resolve => {
      const go = (): void => {
        stream.off('drain', go).off('close', go)
        resolve()
      }
      stream.on('drain', go).on('close', go)
    })
  }
  stream.end()
}

/** The first line, and what follows it. */
const readLine = async (
  stream: Duplex,
): Promise<{ readonly line: string; readonly rest: AsyncIterable<Uint8Array> }> => {
  const chunks: AsyncIterator<Buffer> = stream[Symbol.asyncIterator]()
  let head = Buffer.alloc(0)
  let end = -1
  while (end < 0 && head.length < MAX_LINE) {
    const { value, done } = await chunks.next()
    if (done) break
    head = Buffer.concat([head, value])
    end = head.indexOf(0x0a)
  }
  const line = head.subarray(0, end < 0 ? head.length : end).toString('utf8')
  const rest = async function* (): AsyncGenerator<Uint8Array> {
    if (end >= 0) yield head.subarray(end + 1)
    yield* { [Symbol.asyncIterator]: () => chunks }
  }
  return { line, rest: rest() }
}

const MAX_LINE = 4096

/** The last line of what the program printed. */
const lastText = async (source: AsyncIterable<Uint8Array>): Promise<string> => {
  let text = ''
  for await (const chunk of source) text = (text + Buffer.from(chunk).toString('utf8')).slice(-MAX_LINE)
  return text.trim().split('\n').at(-1) ?? ''
}
