import { type ParsedScript, parse } from 'unbash'
import { findForkBomb } from './forkbomb.ts'
import { memo } from './memo.ts'

/** A text as the shell's grammar has it. Nobody changes it, so that readers of the same text can share it. */
export interface Script {
  readonly tree: ParsedScript
  /** The name of what multiplies itself without end. */
  readonly bomb: string | undefined
}

export const readScript = (text: string): Script => {
  const tree = parse(text)
  // `:(){:|:&};:` is a mistake to bash and a bomb to zsh.
  const other = tree.errors ? findForkBomb(parse(text.replace(/\(\)\s*\{/g, '() { '))) : undefined
  return { tree, bomb: findForkBomb(tree) ?? other }
}

/** For whole commands, which several ask about on their way: where to, what about, and whether at all. */
export const readCommand: (text: string) => Script = memo(readScript)
