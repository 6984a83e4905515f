import { parsePatch, type StructuredPatch } from 'diff'
import { AppError } from '../jobs/errors.ts'
import { isGitInternal } from '../jobs/paths.ts'
import { type BinaryChange, parseBinary } from './binary-patch.ts'

/** What a patch does to one file, with paths relative to the workspace. */
export interface FileChange {
  /** Absent when the file is new. */
  readonly from: string | undefined
  /** Absent when the file is deleted. */
  readonly to: string | undefined
  readonly patch: StructuredPatch
  readonly binary: BinaryChange | undefined
}

/** Reads a patch and refuses any that would reach outside the directory or into git's own files. */
export const parseChanges = (text: string): FileChange[] => {
  const changes = sectionsOf(text).map(parseSection)
  const seen = new Set<string | undefined>()
  for (const { from, to } of changes) {
    const path = to ?? from
    if (seen.has(path)) throw unreadable(`it changes '${path}' twice`)
    seen.add(path)
  }
  return changes
}

const HEADER = 'diff --git '

/** Within a section each line begins with a mark, or is a header of another kind. */
const sectionsOf = (text: string): string[] => {
  const sections: string[][] = []
  for (const line of text.split('\n')) {
    if (line.startsWith(HEADER)) sections.push([])
    sections.at(-1)?.push(line)
  }
  return sections.map(lines => `${lines.join('\n').replace(/\n$/, '')}\n`)
}

const parseSection = (section: string): FileChange => {
  const [patch, ...more] = parsed(section)
  if (patch === undefined || more.length > 0) throw unreadable('a part of it is not about one file')
  const mode = patch.newMode ?? patch.oldMode
  if (patch.isRename || patch.isCopy || (mode !== undefined && !/^100(644|755)$/.test(mode)))
    throw unreadable('it holds more than changes of regular files')
  const from = patch.isCreate ? undefined : pathOf(patch.oldFileName)
  const to = patch.isDelete ? undefined : pathOf(patch.newFileName)
  if (from !== undefined && to !== undefined && from !== to) throw unreadable(`it renames '${from}'`)
  if (from === undefined && to === undefined) throw unreadable('a part of it names no file')
  return { from, to, patch, binary: section.includes('\nGIT binary patch\n') ? binaryOf(section) : undefined }
}

const parsed = (section: string): StructuredPatch[] => {
  try {
    return parsePatch(section)
  } catch (error) {
    throw unreadable(error instanceof Error ? error.message : String(error), error)
  }
}

const binaryOf = (section: string): BinaryChange => {
  try {
    return parseBinary(section)
  } catch (error) {
    throw unreadable('a binary file in it is damaged', error)
  }
}

const unreadable = (why: string, cause?: unknown): AppError =>
  new AppError('invalid', `The patch cannot be read: ${why}.`, {
    hint: 'Nothing was changed. Look at it with: deputy patch ID',
    cause,
  })

const pathOf = (name: string | undefined): string | undefined => {
  if (name === undefined || name === '/dev/null') return undefined
  const path = name.replace(/^[ab]\//, '')
  const problem = problemOf(path)
  if (problem === undefined) return path
  throw new AppError('denied', `The patch is refused: '${path}' ${problem}.`, {
    hint: 'Nothing was changed. Look at it with: deputy patch ID',
  })
}

const problemOf = (path: string): string | undefined => {
  const parts = path.split('/')
  if (path === '' || path.includes('\0')) return 'is no file name'
  if (path.startsWith('/')) return 'is absolute'
  if (parts.includes('..')) return 'leaves the directory'
  if (isGitInternal(path)) return "is among git's own files"
  return undefined
}
