import { open } from 'node:fs/promises'

/** Flushes a file, or the entries of a directory, to disk. Without this, a power cut may lose the write. */
export const flushToDisk = async (path: string): Promise<void> => {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } catch (error) {
    // Some file systems cannot flush a directory; they write its entries immediately.
    if (!['EINVAL', 'EPERM', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  } finally {
    await handle.close()
  }
}
