import { createHash } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { SkippedArtifact } from '../../jobs/job.ts'
import { formatSize } from '../../jobs/sizes.ts'
import { gitPatch, type PatchedFile } from '../../workspace/git-patch.ts'
import {
  isGitPath,
  isIgnoredFile,
  isIgnoreFile,
  type TreeRules,
  treeRules,
} from '../../workspace/tree-ignore.ts'
import { type BaseFile, readBase, readBaseContents } from './base-tree.ts'
import type { Box } from './box.ts'
import { type Collected, collect } from './collect.ts'
import type { ListedFile, Listing } from './listing.ts'
import type { CollectedFile, StartSpec } from './protocol.ts'

export interface PatchOptions {
  readonly box: Box
  readonly spec: StartSpec
  readonly listing: Listing
  /** When the command started, in milliseconds. */
  readonly startedAt: number
  readonly signal: AbortSignal
}

export interface MadePatch {
  readonly patch: CollectedFile | null
  readonly skipped: readonly SkippedArtifact[]
}

/** A file changed within this time of its own date could be changed again without it showing. */
const RACY_MS = 3000

/** The changes of a workspace, computed outside from the tar it began as and the files it ended with. */
export const makePatch = async (options: PatchOptions): Promise<MadePatch> => {
  const { spec, listing } = options
  const base = spec.patchBase === null ? new Map<string, BaseFile>() : await readBase(spec.patchBase)
  const rules = await ignoreRules(options)
  const given = new Set(spec.givenFiles)
  const candidates = listing.files.filter(
    file =>
      !isGitPath(file.path) &&
      !given.has(file.path) &&
      (base.has(file.path) || !isIgnoredFile(file.path, rules)),
  )
  const skipped: SkippedArtifact[] = []
  const suspects = candidates.filter(file => {
    if (file.type === 'file') return !looksUnchanged(file, base.get(file.path), options.startedAt)
    if (!base.has(file.path) || file.type === 'other')
      skipped.push({ path: file.path, reason: 'only regular files are in the patch' })
    return false
  })
  const bytes = suspects.reduce((sum, file) => sum + file.size, 0)
  if (bytes > spec.keep.artifactBytes)
    return tooLarge(
      `the changed files have ${formatSize(bytes)}, more than ${formatSize(spec.keep.artifactBytes)}`,
    )
  const collected = await fetch(options, suspects, 'tree')
  try {
    const changed = await changesOf(options, base, collected, suspects)
    if (changed.bytes > 2 * spec.keep.patchBytes)
      return tooLarge(`the changed files have ${formatSize(changed.bytes)}`)
    const text = gitPatch(await changed.read(), spec.keep.patchBytes)
    if (text === undefined) return tooLarge(`it has more than ${formatSize(spec.keep.patchBytes)}`)
    return {
      patch: text.length === 0 ? null : await save(text, spec.dir),
      skipped: [...skipped, ...collected.skipped],
    }
  } finally {
    await rm(join(spec.dir, 'tree'), { recursive: true, force: true })
  }
}

const tooLarge = (reason: string): MadePatch => ({
  patch: null,
  skipped: [{ path: '.', reason: `no patch: ${reason}` }],
})

const fetch = (
  { box, spec, signal }: PatchOptions,
  wanted: readonly ListedFile[],
  into: string,
): Promise<Collected> => collect({ box, wanted, dir: spec.dir, into, signal })

interface Changes {
  readonly bytes: number
  read(): Promise<PatchedFile[]>
}

const changesOf = async (
  { spec, listing }: PatchOptions,
  base: ReadonlyMap<string, BaseFile>,
  collected: Collected,
  suspects: readonly ListedFile[],
): Promise<Changes> => {
  const modes = new Map(suspects.map(file => [file.path, (file.mode & 0o111) !== 0]))
  const present = new Set(listing.files.filter(file => file.type === 'file').map(file => file.path))
  const changed = collected.files.filter(file => {
    const old = base.get(file.path)
    return old === undefined || old.sha256 !== file.sha256 || old.executable !== modes.get(file.path)
  })
  const deleted = listing.truncated
    ? []
    : [...base.keys()].filter(path => !present.has(path) && !isGitPath(path))
  const paths = new Set([...changed.map(file => file.path), ...deleted])
  const bytes = [...paths].reduce((sum, path) => sum + (base.get(path)?.size ?? 0), sizeOf(changed))
  const read = async (): Promise<PatchedFile[]> => {
    const before = await readBefore(spec, paths)
    const after = new Map<string, Buffer>()
    for (const file of changed) after.set(file.path, await readFile(join(spec.dir, file.file)))
    return [...paths].map(path => ({
      path,
      before: stateOf(before.get(path), base.get(path)?.executable),
      after: stateOf(after.get(path), modes.get(path)),
    }))
  }
  return { bytes, read }
}

const sizeOf = (files: readonly CollectedFile[]): number => files.reduce((sum, file) => sum + file.size, 0)

const stateOf = (content: Buffer | undefined, executable = false): PatchedFile['before'] =>
  content === undefined ? null : { content, executable }

const readBefore = async (spec: StartSpec, wanted: ReadonlySet<string>): Promise<Map<string, Buffer>> =>
  spec.patchBase === null || wanted.size === 0 ? new Map() : readBaseContents(spec.patchBase, wanted)

const looksUnchanged = (file: ListedFile, old: BaseFile | undefined, startedAt: number): boolean =>
  old !== undefined &&
  old.size === file.size &&
  old.executable === ((file.mode & 0o111) !== 0) &&
  old.modified === file.modified &&
  old.modified * 1000 < startedAt - RACY_MS

/** What the workspace's own .gitignore files say now. */
const ignoreRules = async (options: PatchOptions): Promise<TreeRules[]> => {
  const found = options.listing.files.filter(isIgnoreFile)
  const collected = await fetch(options, found.slice(0, 1000), 'ignore')
  const files: { path: string; text: string }[] = []
  for (const { path, file } of collected.files)
    files.push({ path, text: await readFile(join(options.spec.dir, file), 'utf8') })
  await rm(join(options.spec.dir, 'ignore'), { recursive: true, force: true })
  return treeRules(files)
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
