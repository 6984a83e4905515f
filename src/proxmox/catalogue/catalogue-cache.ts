import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Version } from '../pve-version.ts'
import type { Operation } from './catalogue-operation.ts'

/** Increase this when Operation changes, so that a new version of Deputy ignores old cache files. */
const FORMAT_VERSION = 2

/** Returns undefined if the cache is missing or damaged. */
export const readCache = async (dir: string, version: Version): Promise<Operation[] | undefined> => {
  try {
    const operations = JSON.parse(await readFile(fileFor(dir, version), 'utf8')) as unknown
    const valid = Array.isArray(operations) && operations.length > 0 && operations.every(isOperation)
    return valid ? operations : undefined
  } catch {
    return undefined
  }
}

export const writeCache = async (
  dir: string,
  version: Version,
  operations: readonly Operation[],
): Promise<void> => {
  const file = fileFor(dir, version)
  const draft = `${file}.${randomBytes(6).toString('hex')}`
  await mkdir(dir, { recursive: true })
  try {
    await writeFile(draft, JSON.stringify(operations))
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

const isOperation = (value: unknown): value is Operation => {
  const { verb, path, params } = Object(value) as Partial<Operation>
  return typeof verb === 'string' && typeof path === 'string' && Array.isArray(params)
}

const fileFor = (dir: string, { version, repoid }: Version): string => {
  const key = createHash('sha256')
    .update(`${FORMAT_VERSION}\n${version}\n${repoid}`)
    .digest('hex')
    .slice(0, 16)
  return join(dir, `proxmox-catalogue-${key}.json`)
}
