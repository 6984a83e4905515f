import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { removeDirectory } from './remove-directory.ts'

const PREFIX = 'dt-'

/**
 * Whatever the tests leave among the temporary files goes when they are over. The path is short: sockets are made below.
 */
export default function setup(): (() => void) | undefined {
  // Another project of the same run has been here.
  if (basename(tmpdir()).startsWith(PREFIX)) return undefined
  const scratch = mkdtempSync(join(tmpdir(), PREFIX))
  process.env.TMPDIR = scratch
  return () => removeDirectory(scratch)
}
