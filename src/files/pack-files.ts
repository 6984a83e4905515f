import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { pack } from 'tar-stream'
import type { Manifest } from '../jobs/manifest.ts'
import { fileTarget, WORKSPACE } from '../jobs/paths.ts'

type ManifestFiles = NonNullable<Manifest['files']>

/** The files of a manifest as a tar, with names relative to the root directory or to the workspace. */
export async function* filesTar(
  files: ManifestFiles,
  layout: 'root' | 'workspace',
): AsyncGenerator<Uint8Array> {
  const tar = pack()
  for (const file of files) {
    const target = fileTarget(file.path)
    const root = target.root === 'tmp' ? 'tmp' : WORKSPACE.slice(1)
    const name = layout === 'root' ? `${root}/${target.relative}` : target.relative
    const content =
      file.text === undefined ? Buffer.from(file.content ?? '', 'base64') : Buffer.from(file.text)
    tar.entry({ name, mode: Number.parseInt(file.mode ?? '644', 8), mtime: new Date(0) }, content)
  }
  tar.finalize()
  for await (const chunk of tar) yield chunk as Uint8Array
}

/** Writes that tar into the job's directory. Undefined when there are no files. */
export const packFiles = async (
  files: ManifestFiles,
  dir: string,
  layout: 'root' | 'workspace',
): Promise<string | undefined> => {
  if (files.length === 0) return undefined
  const path = join(dir, 'files.tar')
  await pipeline(filesTar(files, layout), createWriteStream(path, { mode: 0o600 }))
  return path
}
