import { chmod, lstat, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { applyPatch as applyHunks } from 'diff'
import { doesNotApply } from './apply.ts'
import type { FileChange } from './parse.ts'

interface Write {
  readonly path: string
  readonly content: string
  readonly executable: boolean
}

/** Applies text changes, new, deleted and renamed files without git. Computes everything before writing anything. */
export const applyOurselves = async (
  changes: readonly FileChange[],
  bytes: Uint8Array,
  directory: string,
): Promise<void> => {
  if (changes.some(change => change.patch.isBinary) || !isText(bytes))
    throw doesNotApply('it changes binary files, which needs git')
  if (changes.some(change => change.patch.newMode === '120000'))
    throw doesNotApply('it changes symbolic links, which needs git')
  const writes: Write[] = []
  const removals: string[] = []
  for (const change of changes) {
    await refuseLinks(directory, change.from)
    await refuseLinks(directory, change.to)
    if (change.to !== undefined) writes.push(await worked(change, change.to, directory))
    if (change.from !== undefined && change.from !== change.to && !change.patch.isCopy)
      removals.push(change.from)
  }
  for (const write of writes) await put(directory, write)
  for (const path of removals) await rm(join(directory, path))
}

const worked = async (change: FileChange, to: string, directory: string): Promise<Write> => {
  const { from, patch } = change
  if (from === undefined && (await modeOf(join(directory, to))) !== undefined)
    throw doesNotApply(`${to} is there already`)
  const mode = from === undefined ? 0 : await modeOf(join(directory, from))
  if (mode === undefined) throw doesNotApply(`${from} is not there`)
  const before = from === undefined ? '' : await readFile(join(directory, from), 'utf8')
  const content = applyHunks(before, patch)
  if (content === false) throw doesNotApply(`${to} differs from what the job saw`)
  const executable = patch.newMode === undefined ? (mode & 0o100) !== 0 : patch.newMode === '100755'
  return { path: to, content, executable }
}

const put = async (directory: string, { path, content, executable }: Write): Promise<void> => {
  const target = join(directory, path)
  await mkdir(dirname(target), { recursive: true })
  const temporary = `${target}.deputy-${process.pid}`
  await writeFile(temporary, content, { flag: 'wx' })
  if (executable) await chmod(temporary, 0o755)
  await rename(temporary, target)
}

/** No component may be a link: it could point out of the directory. */
const refuseLinks = async (directory: string, path: string | undefined): Promise<void> => {
  if (path === undefined) return
  const parts = path.split('/')
  for (let i = 1; i <= parts.length; i++) {
    const at = join(directory, ...parts.slice(0, i))
    const info = await lstat(at).catch(() => undefined)
    if (info?.isSymbolicLink()) throw doesNotApply(`${parts.slice(0, i).join('/')} is a symbolic link`)
  }
}

const modeOf = (path: string): Promise<number | undefined> =>
  lstat(path).then(
    info => info.mode,
    () => undefined,
  )

const isText = (bytes: Uint8Array): boolean => {
  try {
    return !new TextDecoder('utf-8', { fatal: true }).decode(bytes).includes('\0')
  } catch {
    return false
  }
}
