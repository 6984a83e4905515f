import { createTwoFilesPatch } from 'diff'

export interface FileChange {
  path: string
  /** Null when it did not exist. */
  before: FileState | null
  /** Null when it was deleted. */
  after: FileState | null
}

export interface FileState {
  content: Buffer
  executable: boolean
}

export interface Patch {
  text: string
  /** Changed, and not text: they are not in the patch. */
  binary: string[]
}

/** A patch that `git apply` and `patch -p1` take. */
export const makePatch = (changes: readonly FileChange[]): Patch => {
  const binary: string[] = []
  let text = ''
  for (const change of [...changes].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    if (isBinary(change.before?.content) || isBinary(change.after?.content)) {
      if (!sameContent(change)) binary.push(change.path)
      continue
    }
    text += filePatch(change)
  }
  return { text, binary }
}

const filePatch = ({ path, before, after }: FileChange): string => {
  if (before && after && before.content.equals(after.content) && before.executable === after.executable)
    return ''
  const header = [`diff --git ${name('a', path)} ${name('b', path)}`]
  if (!before) header.push(`new file mode ${mode(after)}`)
  else if (!after) header.push(`deleted file mode ${mode(before)}`)
  else if (before.executable !== after.executable)
    header.push(`old mode ${mode(before)}`, `new mode ${mode(after)}`)
  const old = before?.content.toString('utf8') ?? ''
  const next = after?.content.toString('utf8') ?? ''
  if (old === next) return `${header.join('\n')}\n`
  const hunks = createTwoFilesPatch('a', 'b', old, next, undefined, undefined, { context: 3 })
  const body = hunks.slice(hunks.indexOf('@@'))
  const names = [
    `--- ${before ? name('a', path) : '/dev/null'}`,
    `+++ ${after ? name('b', path) : '/dev/null'}`,
  ]
  return `${[...header, ...names].join('\n')}\n${body}`
}

const mode = (state: FileState | null): string => (state?.executable ? '100755' : '100644')

/** git writes names with unusual characters in quotes, as C would. */
const name = (side: string, path: string): string =>
  /["\\]/.test(path) ? `"${side}/${path.replace(/["\\]/g, '\\$&')}"` : `${side}/${path}`

const isBinary = (content: Buffer | undefined): boolean => {
  if (!content) return false
  if (content.subarray(0, 8000).includes(0)) return true
  return !Buffer.from(content.toString('utf8'), 'utf8').equals(content)
}

const sameContent = ({ before, after }: FileChange): boolean =>
  before !== null &&
  after !== null &&
  before.content.equals(after.content) &&
  before.executable === after.executable
