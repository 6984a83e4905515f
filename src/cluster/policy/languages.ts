import { callsIn, literalsIn } from './code.ts'
import type { Builtin } from './commands.ts'
import { guessScript } from './guess.ts'
import type { Interpreter } from './interpreter.ts'
import { judgeShellInput, judgeWrite } from './rules.ts'
import type { Scope } from './scope.ts'
import { runScript, scriptsOf } from './shells.ts'
import { filtered } from './storage.ts'
import { DOWNLOAD, HOME, UNKNOWN } from './text.ts'

const MAX_CODE = 16_384

const LANGUAGE =
  /^(?:python|pypy|perl|ruby|node|nodejs|php|lua|luajit|osascript|deno|bun|tsx|ts-node|jjs|groovy)[\d.]*$/

export const languageOf = (name: string): Builtin | undefined => {
  if (!LANGUAGE.test(name)) return undefined
  return /^(?:perl|ruby|php)/.test(name) ? backtickLanguage : otherLanguage
}

/** Interpreters of other languages: what comes from the network, and calls whose arguments are plain to see. */
const otherLanguage: Builtin = (interpreter, args, scope, stdin) => {
  const operand = args.find(arg => !arg.startsWith('-'))
  const files = operand === undefined ? undefined : scriptsOf(interpreter, operand, scope)
  const piped = operand === undefined || operand === '-' ? [stdin] : []
  for (const text of [...piped, ...(files ?? []), ...args]) {
    interpreter.refuse(judgeShellInput(text, scope.root))
    readCode(interpreter, text, scope)
  }
  return printedBy(args)
}

/** perl, ruby and php run what stands between backticks. */
const backtickLanguage: Builtin = (interpreter, args, scope, stdin) => {
  for (const arg of args)
    for (const { text, runs } of literalsIn(arg.slice(0, MAX_CODE)))
      if (runs) runScript(interpreter, text, scope)
  return otherLanguage(interpreter, args, scope, stdin)
}

/** awk runs commands by system(), by a pipe, and prints into files. */
export const awk: Builtin = (interpreter, args, scope, stdin) => {
  const program = args.find(arg => !arg.startsWith('-')) ?? ''
  for (const arg of args) readCode(interpreter, arg, scope)
  for (const [, , text] of program.slice(0, MAX_CODE).matchAll(/([|]\s*"|>\s*")((?:[^"\\]|\\.){1,512})"/g))
    interpreter.refuse(judgeWrite(text!, scope.cwds))
  if (/\|/.test(program)) for (const { text } of literalsIn(program)) guessScript(interpreter, text, scope)
  if (stdin.includes(DOWNLOAD)) return stdin
  const [, field] = /^\s*\{\s*print(?:\s+\$(\d+))?\s*;?\s*\}\s*$/.exec(program) ?? []
  if (field !== undefined && args[0] === program && !stdin.includes(UNKNOWN) && field !== '0')
    return stdin.replace(/^[^\n]*$/gm, line => line.trim().split(/\s+/)[Number(field) - 1] ?? '')
  if (/^\s*\{\s*print(?:\s+\$0)?\s*;?\s*\}\s*$/.test(program)) return stdin
  return /^\s*BEGIN/.test(program) ? printedBy([program]) : UNKNOWN
}

/** `sed '1e command'` and `s/…/command/e` run it. */
export const sed: Builtin = (interpreter, args, scope, stdin) => {
  for (const arg of args.slice(0, 16)) {
    const text = arg.slice(0, MAX_CODE)
    const command = /^[\d$,/]*\s*e\s+(.+)$/.exec(text)?.[1]
    const replaced = /^s([/|#,:@!])(?:(?!\1)[^\\]|\\.)*\1((?:(?!\1)[^\\]|\\.)*)\1[gp\d]*e/.exec(text)?.[2]
    for (const script of [command, replaced?.replace(/\\(.)/g, '$1')])
      if (script !== undefined) guessScript(interpreter, script, scope)
  }
  return filtered(interpreter, ['sed', ...args], scope, stdin)
}

/** What a line that does little else prints. */
const printedBy = (args: readonly string[]): string => {
  const match = args.map(arg =>
    /\b(?:print|puts|echo|console\.log)\b\s*\(?\s*(["'])([^"'\\]{1,256})\1/.exec(arg),
  )
  return match.find(found => found)?.[2] ?? UNKNOWN
}

const RUN =
  /(?<![\w-])(?:system\w*|popen\w*|p?open3?|exec\w*|spawn\w*|run|call|check_call|check_output|getoutput|shell_exec|passthru|Popen|do shell script|shell-command|Command|\$)(?![\w-])/
const REMOVE =
  /(?<![\w-])(?:rmtree|remove_tree|remove_dir|remove_entry\w*|rm_rf|rm_r|rm|rmSync|rmdirSync|removeSync|Deno\.remove|rimraf|rimrafSync|removedirs|deltree|delete-directory)(?![\w-])/
const OPEN = /(?<![\w-])(?:open|fopen|open_file|openSync|createWriteStream|writeFileSync?)(?![\w-])/

export const readCode = (interpreter: Interpreter, code: string, scope: Scope): void => {
  const text = code.slice(0, MAX_CODE)
  if (!/["'`(]/.test(text)) return
  for (const words of callsIn(text, RUN)) {
    const [first = ''] = words
    if (words.length > 1) {
      // `execvp('rm', ['rm', …])` names the program twice.
      interpreter.run(words[1] === first ? words.slice(1) : words, scope.fork(), '')
      runScript(interpreter, words.join(''), scope)
    }
    runScript(interpreter, first, scope)
  }
  for (const words of callsIn(text, REMOVE))
    for (const path of words) interpreter.run(['rm', '-r', path.replace(/^~/, HOME)], scope, '')
  if (/[wa+>]|O_[WR]/.test(text))
    for (const words of callsIn(text, OPEN)) {
      if (!words.slice(1).some(word => /^[rb]$/.test(word)))
        for (const path of words)
          if (path.includes('/dev/')) interpreter.refuse(judgeWrite(path.replace(/^[+>\s]+/, ''), scope.cwds))
    }
}
