import { randomUUID } from 'node:crypto'
import { chmod, lstat, mkdir, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { applyPatch as applyHunks } from 'diff'
import { AppError } from '../jobs/errors.ts'
import { blobId } from './git-patch.ts'
import { type FileChange, parseChanges } from './parse-patch.ts'
import { readRegularFile } from './regular-file.ts'
import { workspaceDirectory } from './workspace-directory.ts'

interface Write {
  readonly path: string
  readonly content: Buffer
  readonly mode: number
  /** Holds the content until every file is ready. */
  readonly temporary: string
}

/** Larger files are in no patch. */
const MAX_FILE_BYTES = 256 * 1024 * 1024

/**
 * Applies a patch atomically and never outside the directory. Returns the changed files. Does not use git, because git
 * runs programs that the repository's configuration names.
 */
export const applyPatch = async (patch: Uint8Array, directory: string): Promise<string[]> => {
  const top = await workspaceDirectory(directory)
  const changes = parseChanges(new TextDecoder('utf-8', { ignoreBOM: true }).decode(patch))
  const writes: Write[] = []
  const removals: string[] = []
  for (const change of changes) {
    const content = await changedContent(change, top)
    if (change.to === undefined) removals.push(change.from!)
    else writes.push({ path: change.to, temporary: join(top, `.deputy-${randomUUID()}`), ...content })
  }
  try {
    for (const { temporary, content, mode } of writes) {
      await writeFile(temporary, content, { flag: 'wx', mode })
      // The mode of a new file is narrowed by the umask; that of one which was there is kept.
      if (mode !== NEW_FILE && mode !== NEW_PROGRAM) await chmod(temporary, mode)
    }
    for (const path of removals) await remove(top, path)
    for (const { temporary, path } of writes) {
      await mkdir(dirname(join(top, path)), { recursive: true })
      await rename(temporary, join(top, path))
    }
  } catch (error) {
    for (const { temporary } of writes) await rm(temporary, { force: true })
    throw error
  }
  return [...new Set(changes.flatMap(change => change.to ?? change.from ?? []))]
}

const NEW_FILE = 0o666
const NEW_PROGRAM = 0o777

/** What a file shall hold after the change; throws when it does not hold what the job saw. */
const changedContent = async (
  { from, to, patch, binary }: FileChange,
  top: string,
): Promise<{ content: Buffer; mode: number }> => {
  const path = (to ?? from)!
  await refuseLinks(top, path)
  const present = await lstat(join(top, path)).catch(() => undefined)
  if (from === undefined && present !== undefined) throw doesNotApply(`${path} is there already`)
  if (from !== undefined && !present?.isFile()) throw doesNotApply(`${path} is not there`)
  const before = from === undefined ? Buffer.alloc(0) : await read(join(top, from), from)
  const content = binary ? replaced(before, binary) : edited(before, patch)
  if (content === undefined || (to === undefined && content.length > 0))
    throw doesNotApply(`${path} differs from what the job saw`)
  const wasExecutable = ((present?.mode ?? 0) & 0o100) !== 0
  const executable = patch.newMode === undefined ? wasExecutable : patch.newMode === '100755'
  if (present === undefined) return { content, mode: executable ? NEW_PROGRAM : NEW_FILE }
  const old = present.mode & 0o777
  // To make a file executable, set x for each of user, group and others that has r.
  return {
    content,
    mode: executable === wasExecutable ? old : executable ? old | ((old & 0o444) >> 2) : old & ~0o111,
  }
}

const read = (file: string, path: string): Promise<Buffer> =>
  readRegularFile(file, { maxBytes: MAX_FILE_BYTES }).catch(error => {
    throw doesNotApply(`${path} cannot be read`, error)
  })

const replaced = (before: Buffer, binary: NonNullable<FileChange['binary']>): Buffer | undefined => {
  const isExpected = binary.before === NO_BLOB ? before.length === 0 : blobId(before) === binary.before
  if (!isExpected) return undefined
  const isWhole =
    binary.after === NO_BLOB ? binary.content.length === 0 : blobId(binary.content) === binary.after
  if (!isWhole) throw new AppError('invalid', 'The patch is damaged: a binary file has another digest.')
  return binary.content
}

const NO_BLOB = '0'.repeat(40)

const edited = (before: Buffer, patch: FileChange['patch']): Buffer | undefined => {
  const text = before.toString('utf8')
  // Bytes that are no UTF-8 would not come back as they were.
  if (!Buffer.from(text).equals(before)) return undefined
  const changed = applyHunks(text, patch, { autoConvertLineEndings: false })
  return changed === false ? undefined : Buffer.from(changed)
}

/** And the directories that it leaves empty, as git does. */
const remove = async (top: string, path: string): Promise<void> => {
  await rm(join(top, path))
  for (let at = dirname(path); at !== '.'; at = dirname(at))
    if (
      !(await rmdir(join(top, at)).then(
        () => true,
        () => false,
      ))
    )
      return
}

/** No component may be a link: it could point out of the directory. */
const refuseLinks = async (directory: string, path: string): Promise<void> => {
  const parts = path.split('/')
  for (let i = 1; i <= parts.length; i++) {
    const at = join(directory, ...parts.slice(0, i))
    const info = await lstat(at).catch(() => undefined)
    if (info?.isSymbolicLink()) throw doesNotApply(`${parts.slice(0, i).join('/')} is a symbolic link`)
  }
}

const doesNotApply = (why: string, cause?: unknown): AppError =>
  new AppError('conflict', `The patch does not apply: ${why}. Nothing was changed.`, {
    hint: 'The directory has changed since the job copied it. Save the patch (deputy patch ID > job.patch) and merge it by hand.',
    cause,
  })
