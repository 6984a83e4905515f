import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Composite } from '../row-context.ts'
import { text, without } from './values.ts'

/** Proxmox expects paths inside a backup as base64, except the root. */
const encodePath = (path: string): string =>
  path === '/' ? '/' : Buffer.from(path, 'utf8').toString('base64')

export const listFiles: Composite = ({ node, storage, volume, path }, { call }) =>
  call('GET /nodes/{node}/storage/{storage}/file-restore/list', {
    node,
    storage,
    volume,
    filepath: encodePath(text({ path }, 'path') ?? '/'),
  })

/** Saves the file for the user. The model does not see its content. */
export const downloadFile: Composite = async (
  { node, storage, volume, filepath, tar },
  { call, filesDir },
) => {
  const values = without({ node, storage, volume, filepath: encodePath(String(filepath)), tar })
  const content = await call('GET /nodes/{node}/storage/{storage}/file-restore/download', values, {
    bytes: true,
  })
  const bytes = content instanceof Uint8Array ? content : Buffer.from(String(content ?? ''))
  await mkdir(filesDir, { recursive: true, mode: 0o700 })
  const name = basename(String(filepath)).replace(/[^A-Za-z0-9_.-]/g, '_') || 'restored'
  const file = join(filesDir, `${Date.now().toString(36)}-${name}`)
  await writeFile(file, bytes, { mode: 0o600, flag: 'wx' })
  return { ok: true, file, bytes: bytes.length }
}
