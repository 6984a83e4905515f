import { closeSync, openSync, readSync } from 'node:fs'

/** Checks the magic number, not the name. */
export const isGzip = (path: string): boolean => {
  const file = openSync(path, 'r')
  const magic = Buffer.alloc(2)
  readSync(file, magic, 0, 2, 0)
  closeSync(file)
  return magic[0] === 0x1f && magic[1] === 0x8b
}
