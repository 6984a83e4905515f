import { type ParsedScript, parse } from 'unbash'

let last: { text: string; script: ParsedScript } | undefined

/** Parses a script and keeps the last result: routing, topics and policy read the same text one after the other. */
export const parseScript = (text: string): ParsedScript => {
  if (last?.text === text) return last.script
  const script = parse(text)
  // zsh accepts `f(){x}`, a syntax error in bash; the spaces make the body readable.
  last = { text, script: script.errors ? parse(text.replace(/\(\)\s*\{/g, '() { ')) : script }
  return last.script
}
