import { createHash } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import { sep } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { streamRegularFile } from '../../../../files/regular-file.ts'
import { AppError } from '../../../../jobs/errors.ts'
import { upload as send } from '../../../../proxmox/storage-upload.ts'
import type { Args, Composite } from '../row-context.ts'
import { text, without } from './values.ts'

export const listTemplates: Composite = ({ node, storage }, { call }) =>
  call('GET /nodes/{node}/storage/{storage}/content', { node, storage, content: 'vztmpl' })

/** Uploads only from configured directories, so that an agent cannot upload arbitrary files of this computer. */
export const upload: Composite = async (args, { perform, api, uploadDirs, ownDirs, signal }) => {
  const { node, storage, filename, checksum } = args
  const content = uploadable(args.content)
  const operation = without({ node, storage, content, filename })
  return perform('POST /nodes/{node}/storage/{storage}/upload', operation, async () => {
    const file = { path: await allowedFile(String(args.file), uploadDirs, ownDirs) }
    if (checksum !== undefined)
      await verify(file.path, String(checksum), text(args, 'checksum-algorithm') ?? 'sha256')
    return send(api.request, {
      node: String(node),
      storage: String(storage),
      content,
      filename: String(filename),
      file,
      signal,
    })
  })
}

/** Checks the file before the upload; TLS protects it on the way. */
const verify = async (file: string, wanted: string, algorithm: string) => {
  const hash = createHash(algorithm)
  await pipeline(streamRegularFile(file), hash)
  const found = hash.digest('hex')
  if (found !== wanted.toLowerCase())
    throw new AppError('conflict', `The ${algorithm} of ${file} is ${found}, not ${wanted}.`)
}

const uploadable = (content: unknown): 'iso' | 'vztmpl' | 'import' => {
  if (content === 'iso' || content === 'vztmpl' || content === 'import') return content
  throw new AppError('invalid', `Cannot upload content type '${String(content)}'.`, {
    hint: 'Use iso, vztmpl or import.',
  })
}

const allowedFile = async (
  file: string,
  dirs: readonly string[],
  ownDirs: readonly string[],
): Promise<string> => {
  const real = await realpath(file).catch(() => undefined)
  if (real !== undefined && (await isBelow(real, dirs)) && !(await isBelow(real, ownDirs))) return real
  throw new AppError('denied', `Uploading '${file}' is not allowed.`, {
    hint:
      dirs.length > 0
        ? `Allowed directories: ${dirs.join(', ')}.`
        : 'The user can allow directories with proxmoxTools.uploadDirs in the configuration.',
  })
}

/** Whether a resolved path is inside one of the directories. */
const isBelow = async (real: string, dirs: readonly string[]): Promise<boolean> => {
  const roots = await Promise.all(dirs.map(dir => realpath(dir).catch(() => undefined)))
  return roots.some(root => root !== undefined && real.startsWith(root.endsWith(sep) ? root : root + sep))
}

/** Proxmox requires a file name; the default is the last part of the URL. */
export const downloadUrl: Composite = (args, { call }) => {
  const url = new URL(String(args.url))
  const last = decodeURIComponent(url.pathname.split('/').at(-1) ?? '').replace(/[^A-Za-z0-9_.-]/g, '_')
  const filename = text(args, 'filename') ?? last
  if (!/^[A-Za-z0-9_]/.test(filename))
    throw new AppError('invalid', `The URL ${url.href} has no file name.`, { hint: "Give 'filename'." })
  return call('POST /nodes/{node}/storage/{storage}/download-url', {
    ...args,
    content: uploadable(args.content),
    filename,
  })
}

const KEEP = ['keep-last', 'keep-hourly', 'keep-daily', 'keep-weekly', 'keep-monthly', 'keep-yearly']

/** A dry run only reads: it lists which backups would be kept or removed. */
export const prune: Composite = async (args, { call }) => {
  const { node, storage, vmid, type } = args
  const values = without({
    node,
    storage,
    vmid,
    type,
    'prune-backups': args['prune-backups'] ?? keepList(args),
  })
  if (args['dry-run'] === true) return call('GET /nodes/{node}/storage/{storage}/prunebackups', values)
  return call('DELETE /nodes/{node}/storage/{storage}/prunebackups', values)
}

const keepList = (args: Args): string | undefined => {
  const kept = KEEP.filter(key => args[key] !== undefined).map(key => `${key}=${String(args[key])}`)
  return kept.length > 0 ? kept.join(',') : undefined
}
