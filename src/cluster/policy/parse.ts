import { type ParsedScript, parse } from 'unbash'
import { findForkBomb } from './fork-bomb.ts'

export interface Script {
  readonly tree: ParsedScript
  /** The name of a function or loop that multiplies itself without end. */
  readonly forkBomb: string | undefined
}

let last: { text: string; script: Script } | undefined

/** Routing, topics and policy ask about the same text one after the other: it is parsed once. */
export const parseScript = (text: string): Script => {
  if (last?.text === text) return last.script
  const tree = parse(text)
  // `:(){:|:&};:` is a syntax error to bash and a fork bomb to zsh.
  const spaced = tree.errors ? findForkBomb(parse(text.replace(/\(\)\s*\{/g, '() { '))) : undefined
  last = { text, script: { tree, forkBomb: findForkBomb(tree) ?? spaced } }
  return last.script
}
