import { randomBytes } from 'node:crypto'
import { link, readFile, rm, writeFile } from 'node:fs/promises'

/** Reads a file, and creates it if it is missing. If two processes create it at once, both get the first one's content. */
export const keepFile = async (file: string, make: () => string): Promise<string> => {
  const present = await readIfPresent(file)
  if (present) return present
  const draft = `${file}.${randomBytes(6).toString('hex')}`
  await writeFile(draft, make(), { mode: 0o600, flag: 'wx' })
  try {
    // A hard link is atomic and never replaces a file that another process has just created.
    await link(draft, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
    return await readFile(file, 'utf8')
  } finally {
    await rm(draft, { force: true })
  }
}

const readIfPresent = (file: string): Promise<string | undefined> =>
  readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
