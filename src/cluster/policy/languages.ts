import type { Builtin } from './commands.ts'
import type { Interpreter } from './interpret.ts'
import { judgeShellInput, judgeWrite } from './rules.ts'
import type { Scope } from './scope.ts'
import { runScript, scriptsOf } from './shells.ts'
import { UNKNOWN } from './text.ts'

const MAX_CODE = 16_384
const MAX_FOUND = 32

/** Interpreters of other languages: what comes from the network, and calls whose arguments are plain to see. */
export const otherLanguage: Builtin = (interpreter, args, scope, stdin) => {
  const operand = args.find(arg => !arg.startsWith('-'))
  const files = operand === undefined ? undefined : scriptsOf(interpreter, operand, scope)
  const piped = operand === undefined || operand === '-' ? [stdin] : []
  for (const text of [...piped, ...(files ?? []), ...args]) {
    interpreter.refuse(judgeShellInput(text, scope.root))
    readCode(interpreter, text, scope)
  }
  return UNKNOWN
}

/** perl, ruby and php run what stands between backticks. */
export const backtickLanguage: Builtin = (interpreter, args, scope, stdin) => {
  for (const arg of args)
    for (const match of found(arg.slice(0, MAX_CODE), /`([^`\n]{1,512})`/g))
      runScript(interpreter, match[1]!, scope)
  return otherLanguage(interpreter, args, scope, stdin)
}

/** awk runs commands by system(), by a pipe, and prints into files. */
export const awk: Builtin = (interpreter, args, scope, stdin) => {
  for (const arg of args) readCode(interpreter, arg, scope)
  return stdin.includes('\uE002') ? stdin : UNKNOWN
}

const RUN =
  /\b(?:system|popen|exec\w*|spawn\w*|run|call|check_call|check_output|getoutput|shell_exec|passthru|Popen|qx|do shell script)\s*\(?\s*(["'`])((?:(?!\1)[^\\]|\\.){1,512})\1/gs
const RUN_LIST =
  /\b(?:system|exec\w*|spawn\w*|run|call|check_call|check_output|Popen)\s*\(\s*\[([^\]]{1,512})\]/gs
const REMOVE =
  /\b(?:rmtree|remove_tree|rm_rf|rm_r|rm|rmSync|rmdirSync|rimraf|rimrafSync|removeSync|removedirs|deltree)\s*\(?\s*(?:os\.path\.expanduser\(\s*)?(["'])([^"'\n]{1,256})\1/g
const WRITE = /\bopen\w*\s*\(\s*(["'])(\/[^"'\n]{1,256})\1\s*,\s*["'][rb]?[wa+]/g

const readCode = (interpreter: Interpreter, code: string, scope: Scope): void => {
  const text = code.slice(0, MAX_CODE)
  if (!/["']/.test(text)) return
  for (const match of found(text, RUN)) runScript(interpreter, withoutEscapes(match[2]!), scope)
  for (const match of found(text, RUN_LIST)) {
    const words = [...match[1]!.matchAll(/(["'])(.*?)\1/g)].map(word => word[2]!)
    if (words.length > 0) interpreter.run(words, scope, '')
  }
  for (const match of found(text, REMOVE))
    interpreter.run(['rm', '-r', match[2]!.replace(/^~/, '\uE001')], scope, '')
  for (const match of found(text, WRITE)) interpreter.refuse(judgeWrite(match[2]!, scope.cwds))
}

const found = (text: string, pattern: RegExp): RegExpMatchArray[] => {
  const matches: RegExpMatchArray[] = []
  for (const match of text.matchAll(pattern)) {
    if (matches.push(match) >= MAX_FOUND) break
  }
  return matches
}

const withoutEscapes = (text: string): string => text.replace(/\\(["'\\])/g, '$1')
