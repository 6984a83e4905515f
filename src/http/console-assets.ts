import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'

/** A file of the built console. */
export interface Asset {
  readonly type: string
  readonly etag: string
  /** The bytes in an encoding that the client takes. */
  body(acceptEncoding: string): Promise<{ readonly bytes: Uint8Array; readonly encoding: string | undefined }>
}

/** Next to the compiled daemon. Tests run the sources and use the build in dist/. */
const DIRECTORY = new URL(import.meta.url.endsWith('.ts') ? '../../dist/web/' : '../web/', import.meta.url)

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

const NAME = /^[A-Za-z0-9_-]{1,80}\.(html|css|js|svg)$/

/** Reads and compresses each file once: there are a few, and they do not change while the daemon runs. */
export const createConsoleAssets = (directory: URL = DIRECTORY) => {
  const known = new Map<string, Promise<Asset | undefined>>()
  return (name: string): Promise<Asset | undefined> => {
    const extension = NAME.exec(name)?.[1]
    if (extension === undefined) return Promise.resolve(undefined)
    const present = known.get(name) ?? readAsset(new URL(name, directory), TYPES[extension]!)
    known.set(name, present)
    // Do not cache unknown names: a client could fill the memory with them.
    void present.then(asset => asset ?? known.delete(name))
    return present
  }
}

const readAsset = async (file: URL, type: string): Promise<Asset | undefined> => {
  const plain = await readFile(file).catch(() => undefined)
  if (plain === undefined) return undefined
  const etag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`
  const encoders = { br: promisify(brotliCompress), gzip: promisify(gzip) }
  const made = new Map<string, Promise<Uint8Array>>()
  return {
    type,
    etag,
    body: async accepted => {
      const encoding = (['br', 'gzip'] as const).find(name => new RegExp(`\\b${name}\\b`).test(accepted))
      if (encoding === undefined) return { bytes: plain, encoding }
      const bytes = made.get(encoding) ?? encoders[encoding](plain)
      made.set(encoding, bytes)
      return { bytes: await bytes, encoding }
    },
  }
}
