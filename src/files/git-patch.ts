import { createHash } from 'node:crypto'
import { deflateSync } from 'node:zlib'
import { createTwoFilesPatch } from 'diff'

export interface PatchedFile {
  readonly path: string
  /** Null when the file did not exist. */
  readonly before: PatchedState | null
  /** Null when the file was deleted. */
  readonly after: PatchedState | null
}

export interface PatchedState {
  readonly content: Buffer
  readonly executable: boolean
}

/** Beyond these limits, no diff is computed and the patch contains the whole file. */
const DIFF_MS = 3000
const DIFF_BYTES = 2 * 1024 * 1024

/** Makes a patch for `git apply`, with binary files and modes. Returns undefined when it exceeds `maxBytes`. */
export const gitPatch = (
  files: readonly PatchedFile[],
  maxBytes = Number.POSITIVE_INFINITY,
): Buffer | undefined => {
  const parts: Buffer[] = []
  let bytes = 0
  for (const file of [...files].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))) {
    const part = Buffer.from(filePatch(file))
    bytes += part.length
    if (bytes > maxBytes) return undefined
    parts.push(part)
  }
  return Buffer.concat(parts)
}

const filePatch = (file: PatchedFile): string => {
  const { before, after } = file
  const sameContent = before !== null && after !== null && before.content.equals(after.content)
  if (sameContent && before.executable === after.executable) return ''
  const header = headerOf(file)
  if (sameContent || contentOf(before).equals(contentOf(after))) return header
  return `${header}${textChange(file) ?? binaryChange(file)}`
}

const headerOf = ({ path, before, after }: PatchedFile): string => {
  const lines = [`diff --git ${name('a', path)} ${name('b', path)}`]
  if (before === null) lines.push(`new file mode ${mode(after)}`)
  else if (after === null) lines.push(`deleted file mode ${mode(before)}`)
  else if (before.executable !== after.executable)
    lines.push(`old mode ${mode(before)}`, `new mode ${mode(after)}`)
  return `${lines.join('\n')}\n`
}

const textChange = ({ path, before, after }: PatchedFile): string | undefined => {
  const [old, next] = [contentOf(before), contentOf(after)]
  if (old.length + next.length > DIFF_BYTES || isBinary(old) || isBinary(next)) return undefined
  const hunks = createTwoFilesPatch(
    'a',
    'b',
    old.toString('utf8'),
    next.toString('utf8'),
    undefined,
    undefined,
    {
      context: 3,
      timeout: DIFF_MS,
    },
  )
  if (hunks === undefined) return undefined
  // A name with a space ends with a tab; otherwise readers take the rest of the line for a date.
  const side = (letter: string, state: PatchedState | null) =>
    state === null ? '/dev/null' : `${name(letter, path)}${path.includes(' ') ? '\t' : ''}`
  return `--- ${side('a', before)}\n+++ ${side('b', after)}\n${hunks.slice(hunks.indexOf('@@'))}`
}

/** The whole new content, deflated, in base 85. Git verifies the old content by its hash. */
const binaryChange = ({ before, after }: PatchedFile): string => {
  const next = contentOf(after)
  const suffix = before !== null && after !== null ? ` ${mode(after)}` : ''
  return `index ${idOf(before)}..${idOf(after)}${suffix}\nGIT binary patch\nliteral ${next.length}\n${base85(deflateSync(next))}\n`
}

const contentOf = (state: PatchedState | null): Buffer => state?.content ?? Buffer.alloc(0)

const mode = (state: PatchedState | null): string => (state?.executable ? '100755' : '100644')

const idOf = (state: PatchedState | null): string => (state === null ? '0'.repeat(40) : blobId(state.content))

/** The git object id of a content. */
export const blobId = (content: Buffer): string =>
  createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex')

const isBinary = (content: Buffer): boolean =>
  content.subarray(0, 8000).includes(0) || !Buffer.from(content.toString('utf8'), 'utf8').equals(content)

const ESCAPES: Readonly<Record<string, string>> = {
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '"': '\\"',
  '\\': '\\\\',
}

/** Git quotes names with unusual characters like C strings. */
const name = (side: string, path: string): string => {
  const full = `${side}/${path}`
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is escaped
  const unusual = /[\u0000-\u001f\u007f"\\]/g
  if (!unusual.test(full)) return full
  const escaped = full.replace(
    unusual,
    character => ESCAPES[character] ?? `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`,
  )
  return `"${escaped}"`
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~'
const LINE_BYTES = 52

/** Lines of at most 52 bytes, each prefixed with a letter for its length. */
const base85 = (data: Buffer): string => {
  const lines = Math.ceil(data.length / LINE_BYTES)
  const out = Buffer.alloc(lines * 2 + Math.ceil(data.length / 4) * 5)
  let at = 0
  for (let from = 0; from < data.length; from += LINE_BYTES) {
    const length = Math.min(LINE_BYTES, data.length - from)
    out[at++] = length <= 26 ? 64 + length : 70 + length
    for (let index = from; index < from + length; index += 4) {
      let value = 0
      for (let byte = 0; byte < 4; byte++)
        value = value * 256 + (index + byte < from + length ? data[index + byte]! : 0)
      for (let digit = 4; digit >= 0; digit--) {
        out[at + digit] = ALPHABET.charCodeAt(value % 85)
        value = Math.floor(value / 85)
      }
      at += 5
    }
    out[at++] = 10
  }
  return out.toString('latin1', 0, at)
}
