import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { readRegularFile } from '../files/regular-file.ts'
import { AppError } from '../jobs/errors.ts'
import { LIMITS } from '../jobs/limits.ts'
import { isRecord } from '../jobs/records.ts'

export interface ManifestTemplate {
  readonly name: string
  /** Absent when the file cannot be read as a manifest. */
  readonly manifest?: Readonly<Record<string, unknown>>
  readonly problem?: string
}

/** Manifests that the user saved under a name: YAML files, which `deputy run FILE` takes as well. */
export interface ManifestTemplates {
  readonly directory: string
  list(): Promise<ManifestTemplate[]>
  save(name: string, manifest: Readonly<Record<string, unknown>>): Promise<void>
  remove(name: string): Promise<void>
}

export const TEMPLATE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const SUFFIX = '.yaml'

export const openTemplates = (directory: string): ManifestTemplates => {
  const pathOf = (name: string): string => join(directory, `${name}${SUFFIX}`)
  const read = async (name: string): Promise<ManifestTemplate> => {
    try {
      const bytes = await readRegularFile(pathOf(name), { maxBytes: LIMITS.manifestBytes, follow: true })
      const manifest: unknown = parse(bytes.toString('utf8'))
      return isRecord(manifest) ? { name, manifest } : { name, problem: 'it is not a mapping' }
    } catch (error) {
      return { name, problem: error instanceof Error ? error.message : String(error) }
    }
  }
  return {
    directory,
    list: async () => {
      const files = await readdir(directory).catch(ignoreMissing)
      const names = files.filter(file => file.endsWith(SUFFIX)).map(file => file.slice(0, -SUFFIX.length))
      return Promise.all(
        names
          .filter(name => TEMPLATE_NAME.test(name))
          .sort()
          .map(read),
      )
    },
    save: async (name, manifest) => {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      await writeFile(`${pathOf(name)}.new`, stringify(manifest, { lineWidth: 0 }), { mode: 0o600 })
      await rename(`${pathOf(name)}.new`, pathOf(name))
    },
    remove: async name => {
      await rm(pathOf(name)).catch(() => {
        throw new AppError('not_found', `There is no template '${name}'.`, {
          hint: `ls ${directory}`,
        })
      })
    },
  }
}

const ignoreMissing = (error: NodeJS.ErrnoException): string[] => {
  if (error.code === 'ENOENT') return []
  throw error
}
