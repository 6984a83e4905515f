import { resolvePath } from './targets.ts'
import { baseName } from './text.ts'

const MAX_FILES = 128
const MAX_VERSIONS = 4
const MAX_TEXT = 65_536
/** What a loop or a branch adds to, line by line. */
const MAX_GROWN = 8192
const MAX_PATH = 4096

export interface Place {
  cwds: readonly string[]
  /** In a branch the file may as well be as it was. */
  conditional: boolean
}

/** What a script wrote into files, so that it is known when the same script runs them. */
export interface Files {
  write(path: string, text: string, place: Place, append?: boolean): void
  /** Every text the file may hold; nothing when the script has not written it. */
  read(path: string, cwds: readonly string[]): string[] | undefined
}

/** `spend` is told how much was read. */
export const createFiles = (spend: (length: number) => void): Files => {
  const known = new Map<string, string[]>()
  /** Last parts of their names: nearly every word that is asked about is none. */
  const names = new Set<string>()

  const write = (key: string, text: string, conditional: boolean, append: boolean): void => {
    const before = known.get(key)
    if (!before && known.size >= MAX_FILES) return
    const most = conditional ? MAX_GROWN : MAX_TEXT
    const next = append && before ? before.map(old => (old + text).slice(0, most)) : [text]
    const all = conditional && before ? [...before, ...next] : next
    known.set(key, [...new Set(all)].slice(-MAX_VERSIONS))
    names.add(baseName(key))
  }

  return {
    write: (path, text, { cwds, conditional }, append = false) => {
      if (path === '' || path.length > MAX_PATH) return
      for (const cwd of cwds)
        write(resolvePath(path, cwd), text.slice(0, MAX_TEXT), conditional || cwds.length > 1, append)
    },
    read: (path, cwds) => {
      if (path === '' || path.length > MAX_PATH || !names.has(baseName(path))) return undefined
      const texts = cwds.flatMap(cwd => known.get(resolvePath(path, cwd)) ?? [])
      for (const text of texts) spend(text.length)
      return texts.length > 0 ? texts : undefined
    },
  }
}
