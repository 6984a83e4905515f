import { rmSync } from 'node:fs'

const REMOVE_ATTEMPTS = 100

/**
 * Removes a directory, such as a home whose daemon was killed: its shims may still create a file while the
 * directory is being removed; the retries of rmSync do not list the directory again, so the whole removal is repeated.
 */
export const removeDirectory = (directory: string): void => {
  for (let attempt = 1; ; attempt++) {
    try {
      rmSync(directory, { recursive: true, force: true })
      return
    } catch (error) {
      if (attempt === REMOVE_ATTEMPTS) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
    }
  }
}
