import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { link, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { extract } from 'tar-stream'
import { flushToDisk } from '../files/flush.ts'
import { AppError } from '../jobs/errors.ts'
import { acquireLock } from './daemon-lock.ts'
import { quickCheck } from './quick-check.ts'
import { openStore } from './sqlite-store.ts'

export interface Restored {
  readonly blobs: number
  /** Jobs that were pending in the backup. They may have run since, so they are not run again. */
  readonly notRun: number
  /** Path of the replaced database. */
  readonly replaced: string
}

/**
 * Replaces the database with that of a backup and adds its blobs. The daemon must not run. The whole backup is checked
 * before anything changes.
 */
export const restoreBackup = async (stateDir: string, file: string): Promise<Restored> => {
  await mkdir(stateDir, { recursive: true, mode: 0o700 })
  const lock = acquireLock(join(stateDir, 'daemon.lock'))
  if (lock === undefined)
    throw new AppError('conflict', 'The daemon is running.', { hint: 'deputy daemon stop' })
  const staging = join(stateDir, 'restore')
  const database = join(staging, 'deputy.db')
  try {
    await rm(staging, { recursive: true, force: true })
    await mkdir(join(staging, 'blobs'), { recursive: true, mode: 0o700 })
    await unpack(file, staging)
    quickCheck(database)
    const notRun = await failPending(database)
    const blobs = await placeBlobs(join(staging, 'blobs'), join(stateDir, 'blobs'))
    const replaced = await replaceDatabase(database, join(stateDir, 'deputy.db'))
    return { blobs, notRun, replaced }
  } finally {
    await rm(staging, { recursive: true, force: true })
    lock.release()
  }
}

const BLOB = /^blobs\/([0-9a-f]{64})$/

const unpack = async (file: string, staging: string): Promise<void> => {
  const entries = extract()
  createReadStream(file)
    .on('error', error => entries.destroy(error))
    .pipe(entries)
  let hasDatabase = false
  try {
    for await (const entry of entries) {
      const { name, type } = entry.header
      const sha256 = BLOB.exec(name)?.[1]
      if (type !== 'file' || (sha256 === undefined && name !== 'deputy.db')) throw notABackup(file)
      hasDatabase ||= name === 'deputy.db'
      const hash = createHash('sha256')
      await pipeline(
        async function* () {
          for await (const chunk of entry as AsyncIterable<Uint8Array>) {
            hash.update(chunk)
            yield chunk
          }
        },
        createWriteStream(join(staging, name), { mode: 0o600, flush: true }),
      )
      if (sha256 !== undefined && hash.digest('hex') !== sha256)
        throw new AppError('invalid', `${file} is damaged: wrong checksum of ${name}.`, {
          hint: 'Restore another backup.',
        })
    }
  } catch (error) {
    if (error instanceof AppError) throw error
    throw new AppError('invalid', `Cannot read ${file}: ${error instanceof Error ? error.message : error}.`, {
      cause: error,
    })
  }
  if (!hasDatabase) throw notABackup(file)
}

const notABackup = (file: string): AppError =>
  new AppError('invalid', `${file} is not a Deputy backup.`, { hint: 'deputy backup FILE' })

const failPending = async (path: string): Promise<number> => {
  const store = openStore(path)
  try {
    let count = 0
    for (;;) {
      const pending = await store.listJobs({ status: 'pending', limit: 500 })
      if (pending.length === 0) return count
      const at = Date.now()
      const message = 'The job was pending when the backup was made and may have run since.'
      await Promise.all(
        pending.map(({ id }) =>
          store.move(
            id,
            'failed',
            { completedAt: at, error: { code: 'lost', message, hint: 'Submit it again.' } },
            { at, data: { reason: message } },
          ),
        ),
      )
      count += pending.length
    }
  } finally {
    await store.close()
  }
}

const placeBlobs = async (from: string, to: string): Promise<number> => {
  const names = await readdir(from)
  for (const sha256 of names) {
    await mkdir(join(to, sha256.slice(0, 2)), { recursive: true, mode: 0o700 })
    await rename(join(from, sha256), join(to, sha256.slice(0, 2), sha256))
  }
  // Flush the directory entries of the blobs before the database that refers to them is put in place.
  for (const directory of new Set(names.map(sha256 => join(to, sha256.slice(0, 2)))))
    await flushToDisk(directory)
  if (names.length > 0) await flushToDisk(to)
  return names.length
}

/** Keeps the old database with its write-ahead log, which must not be applied to the new one. */
const replaceDatabase = async (from: string, to: string): Promise<string> => {
  const kept = `${to}.replaced`
  for (const suffix of ['', '-wal']) {
    await rm(`${kept}${suffix}`, { force: true })
    await link(`${to}${suffix}`, `${kept}${suffix}`).catch(ignoreMissing)
  }
  for (const suffix of ['-wal', '-shm', '.suspect']) await rm(`${to}${suffix}`, { force: true })
  await rename(from, to)
  await flushToDisk(dirname(to))
  return kept
}

const ignoreMissing = (error: NodeJS.ErrnoException): void => {
  if (error.code !== 'ENOENT') throw error
}
