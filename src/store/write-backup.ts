import { createReadStream, createWriteStream } from 'node:fs'
import { access, open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { type Pack, pack } from 'tar-stream'
import { flushToDisk } from '../files/flush.ts'
import { AppError } from '../jobs/errors.ts'
import { type Database, openDatabase, perform } from './database.ts'
import { deleteJob } from './jobs-table.ts'

export interface Backup {
  readonly jobs: number
  readonly blobs: number
  readonly bytes: number
  /** Referenced files that do not exist: they were lost before this backup. */
  readonly missing: number
}

/**
 * Writes the database and every blob it refers to into one tar file. The daemon may run meanwhile: SQLite copies the
 * database in one transaction, and blobs never change.
 */
export const writeBackup = async (stateDir: string, file: string): Promise<Backup> => {
  const source = join(stateDir, 'deputy.db')
  if (!(await exists(source)))
    throw new AppError('not_found', `Nothing to back up in ${stateDir}.`, {
      hint: 'deputy daemon status',
    })
  if (await exists(file))
    throw new AppError('conflict', `${file} already exists.`, {
      hint: `Choose another name, or: rm '${file}'`,
    })
  const snapshot = join(dirname(file), `.${basename(file)}.db`)
  const partial = join(dirname(file), `.${basename(file)}.partial`)
  const live = openDatabase(source)
  try {
    for (const leftover of [snapshot, partial]) await rm(leftover, { force: true })
    live.exec(`vacuum into '${snapshot.replaceAll("'", "''")}'`)
    const backup = await writeTar({ stateDir, snapshot, partial, live })
    await flushToDisk(partial)
    await rename(partial, file)
    await flushToDisk(dirname(file))
    return backup
  } finally {
    live.close()
    for (const leftover of [snapshot, partial]) await rm(leftover, { force: true })
  }
}

interface Files {
  readonly stateDir: string
  readonly snapshot: string
  readonly partial: string
  readonly live: Database
}

const writeTar = async ({ stateDir, snapshot, partial, live }: Files): Promise<Backup> => {
  const database = openDatabase(snapshot)
  const tar = pack()
  const written = pipeline(tar, createWriteStream(partial, { mode: 0o600 }))
  let blobs = 0
  let bytes = 0
  const absent: string[] = []
  try {
    for (const row of database.all('select distinct sha256 from artifacts')) {
      const sha256 = String(row.sha256)
      const size = await addFile(tar, `blobs/${sha256}`, join(stateDir, 'blobs', sha256.slice(0, 2), sha256))
      if (size === undefined) absent.push(sha256)
      else {
        blobs += 1
        bytes += size
      }
    }
    const missing = dropDeletedJobs(database, live, absent)
    const jobs = Number(database.get('select count(*) as jobs from jobs')?.jobs)
    database.close()
    // Added last, because jobs that are deleted while their blobs are read must be removed from it first.
    bytes += (await addFile(tar, 'deputy.db', snapshot)) ?? 0
    tar.finalize()
    await written
    return { jobs, blobs, bytes, missing }
  } catch (error) {
    tar.destroy()
    // It fails because of `destroy`; the first error is the one to report.
    await written.catch(() => {})
    throw error
  }
}

/**
 * Removes jobs from the copy that were deleted during the backup. Returns how many blobs are missing for another
 * reason.
 */
const dropDeletedJobs = (database: Database, live: Database, absent: readonly string[]): number => {
  let missing = 0
  for (const sha256 of absent) {
    const users = database.all('select distinct job_id from artifacts where sha256 = ?', sha256)
    for (const { job_id } of users) {
      const id = String(job_id)
      if (live.get('select 1 from jobs where id = ?', id) === undefined) perform(database, deleteJob(id))
      else missing += 1
    }
  }
  return missing
}

/**
 * Returns the size, or undefined when the file does not exist. Opens the file first, so that it stays readable if it is
 * removed meanwhile.
 */
const addFile = async (tar: Pack, name: string, path: string): Promise<number | undefined> => {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (file === undefined) return undefined
  const { size } = await file.stat()
  const entry = tar.entry({ name, size, mode: 0o600 })
  await pipeline(createReadStream(path, { fd: file }), entry)
  return size
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
