import { createHash } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readBase, readBaseContents } from '../../files/base-tree.ts'
import type { ListedFile, Listing } from '../../files/file-listing.ts'
import { gitPatch } from '../../files/git-patch.ts'
import {
  changesOf,
  type FinalWorkspace,
  findCandidates,
  ignoreFilesOf,
  patchedFiles,
} from '../../files/workspace-changes.ts'
import type { SkippedArtifact } from '../../jobs/job.ts'
import { formatSize } from '../../jobs/sizes.ts'
import type { CollectedFile } from '../../runner/run-result.ts'
import { type CollectedFiles, collectFiles } from './collect-files.ts'
import type { LocalMachine } from './local-machine.ts'
import type { RunSpec } from './run-spec.ts'

export interface MakePatchOptions {
  readonly machine: LocalMachine
  readonly spec: RunSpec
  readonly listing: Listing
  /** When the command started, in milliseconds. */
  readonly startedAt: number
  readonly signal: AbortSignal
}

export interface PatchResult {
  readonly patch: CollectedFile | null
  readonly skipped: readonly SkippedArtifact[]
}

/** Computes the patch outside the machine, from the initial tar and the final files. */
export const makePatch = async (options: MakePatchOptions): Promise<PatchResult> => {
  const { spec, listing, startedAt } = options
  const base = await readBase(spec.patchBase)
  const ignores = await readIgnores(options)
  const candidates = findCandidates({ listing, base, ignores, given: spec.givenFiles, startedAt })
  const bytes = candidates.files.reduce((sum, file) => sum + file.size, 0)
  if (bytes > spec.keep.artifactBytes)
    return noPatch(
      `the changed files have ${formatSize(bytes)}, more than ${formatSize(spec.keep.artifactBytes)}`,
    )
  const collected = await collectInto(options, candidates.files, 'tree')
  try {
    const changes = changesOf({ listing, base }, candidates.files, collected.files)
    if (changes.bytes > 2 * spec.keep.patchBytes)
      return noPatch(`the changed files have ${formatSize(changes.bytes)}`)
    const paths = new Set(changes.files.map(file => file.path))
    const before = await readBaseContents(spec.patchBase, paths)
    const after = await readAll(
      spec.dir,
      collected.files.filter(file => paths.has(file.path)),
    )
    const text = gitPatch(patchedFiles(changes.files, before, after), spec.keep.patchBytes)
    if (text === undefined) return noPatch(`it has more than ${formatSize(spec.keep.patchBytes)}`)
    return {
      patch: text.length === 0 ? null : await save(text, spec.dir),
      skipped: [...candidates.skipped, ...collected.skipped],
    }
  } finally {
    await rm(join(spec.dir, 'tree'), { recursive: true, force: true })
  }
}

const noPatch = (reason: string): PatchResult => ({
  patch: null,
  skipped: [{ path: '.', reason: `no patch: ${reason}` }],
})

const collectInto = (
  { machine, spec, signal }: MakePatchOptions,
  wanted: readonly ListedFile[],
  into: string,
): Promise<CollectedFiles> => collectFiles({ machine, wanted, dir: spec.dir, into, signal })

/** Reads the current .gitignore files of the workspace. */
const readIgnores = async (options: MakePatchOptions): Promise<FinalWorkspace['ignores']> => {
  const { dir } = options.spec
  const collected = await collectInto(options, ignoreFilesOf(options.listing), 'ignore')
  const contents = await readAll(dir, collected.files)
  await rm(join(dir, 'ignore'), { recursive: true, force: true })
  return [...contents].map(([path, content]) => ({ path, text: content.toString('utf8') }))
}

const readAll = async (dir: string, files: readonly CollectedFile[]): Promise<Map<string, Buffer>> => {
  const contents = new Map<string, Buffer>()
  for (const { path, file } of files) contents.set(path, await readFile(join(dir, file)))
  return contents
}

const save = async (text: Buffer, dir: string): Promise<CollectedFile> => {
  await writeFile(join(dir, 'patch'), text, { mode: 0o600 })
  return {
    path: 'patch',
    file: 'patch',
    size: text.length,
    sha256: createHash('sha256').update(text).digest('hex'),
  }
}
