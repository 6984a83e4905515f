import { open } from 'node:fs/promises'

/** Flushes a file, or the names in a directory, to the disk: until then a power cut may take it. */
export const flushToDisk = async (path: string): Promise<void> => {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } catch (error) {
    // Some file systems cannot flush a directory; they write names at once.
    if (!['EINVAL', 'EPERM', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  } finally {
    await handle.close()
  }
}
