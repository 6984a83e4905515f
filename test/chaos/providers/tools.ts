import { existsSync } from 'node:fs'
import { join } from 'node:path'

export const has = (tool: string): boolean =>
  (process.env.PATH ?? '').split(':').some(directory => existsSync(join(directory, tool)))

export const findBackend = (): string | undefined =>
  has('bwrap') || has('pivot_root') ? undefined : 'neither bwrap nor pivot_root is installed'
