export interface FilePatch {
  readonly path: string
  readonly added: number
  readonly removed: number
  readonly lines: readonly PatchLine[]
}

interface PatchLine {
  readonly kind: 'added' | 'removed' | 'hunk' | 'same' | 'note'
  readonly text: string
}

/** A patch in git's form, file by file. */
export const parsePatch = (patch: string): FilePatch[] =>
  patch
    .split(/^(?=diff --git )/m)
    .filter(part => part.startsWith('diff --git '))
    .map(part => {
      const [head = '', ...rest] = part.replace(/\n$/, '').split('\n')
      const lines: PatchLine[] = []
      let isInHunk = false
      for (const text of rest) {
        isInHunk ||= text.startsWith('@@')
        if (isInHunk || !/^(index|---|\+\+\+) /.test(text)) lines.push({ kind: kindOf(text, isInHunk), text })
      }
      const count = (kind: PatchLine['kind']): number => lines.filter(line => line.kind === kind).length
      return { path: pathOf(head, rest), added: count('added'), removed: count('removed'), lines }
    })

const kindOf = (text: string, isInHunk: boolean): PatchLine['kind'] => {
  if (!isInHunk || text.startsWith('\\')) return 'note'
  if (text.startsWith('@@')) return 'hunk'
  if (text.startsWith('+')) return 'added'
  return text.startsWith('-') ? 'removed' : 'same'
}

/** From the line of the new file, else of the old one; binary files have neither. */
const pathOf = (head: string, rest: readonly string[]): string => {
  const named = (prefix: string): string | undefined =>
    rest.find(line => line.startsWith(prefix))?.slice(prefix.length)
  return named('+++ b/') ?? named('--- a/') ?? head.replace(/^diff --git (?:a\/)?/, '').split(' b/')[0]!
}
