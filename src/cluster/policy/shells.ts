import type { Builtin } from './commands.ts'
import { allBackground } from './forkbomb.ts'
import { guessScript, guessWords } from './guess.ts'
import type { Interpreter } from './interpreter.ts'
import { judgeShellInput } from './rules.ts'
import type { Scope } from './scope.ts'
import { readScript } from './script.ts'
import { baseName, ENDLESS, processOutput, UNKNOWN } from './text.ts'
import { unwrap } from './wrappers.ts'

const MAX_REENTRY = 2

export const runScript = (interpreter: Interpreter, script: string, scope: Scope): string => {
  interpreter.refuse(judgeShellInput(script, scope.root))
  return interpreter.runText(script, scope.fork({ depth: scope.depth + 1 }))
}

export const runInput = (interpreter: Interpreter, scope: Scope, stdin: string): string => {
  interpreter.refuse(judgeShellInput(stdin, scope.root))
  if (stdin.includes(ENDLESS) && allBackground(readScript(stdin.replaceAll(ENDLESS, '')).tree.commands))
    interpreter.refuse({ rule: 'fork-bomb', reason: 'it starts processes without end' })
  return stdin.includes(UNKNOWN) && stdin.length < 2
    ? UNKNOWN
    : interpreter.runText(stdin, scope.fork({ depth: scope.depth + 1 }))
}

/** Every text a word that names a script may stand for: `<(…)`, or a file that was written before. */
export const scriptsOf = (
  interpreter: Interpreter,
  word: string,
  scope: Scope,
): readonly string[] | undefined => {
  const output = processOutput(word, interpreter.processes)
  return output === undefined ? interpreter.files.read(word, scope.cwds) : [output]
}

/** Runs a file of the script's own; one that calls itself is left after a round. */
export const runFile = (
  interpreter: Interpreter,
  texts: readonly string[],
  run: (text: string) => string,
): string =>
  texts
    .map(text => {
      const key = `file ${text}`
      const entered = interpreter.active.get(key) ?? 0
      if (entered >= MAX_REENTRY) return UNKNOWN
      interpreter.active.set(key, entered + 1)
      try {
        return run(text)
      } finally {
        interpreter.active.set(key, entered)
      }
    })
    .join('')

/** What `#!` names decides who reads the rest. */
export const runExecutable = (interpreter: Interpreter, texts: readonly string[], scope: Scope): string =>
  runFile(interpreter, texts, text => {
    interpreter.refuse(judgeShellInput(text, scope.root))
    const [, program = '', first = ''] = /^#!\s*(\S+)[ \t]*(?:-S\s+)?(\S*)/.exec(text.slice(0, 120)) ?? []
    const name = baseName(program) === 'env' ? first : baseName(program)
    return name === '' || isShell(name)
      ? runScript(interpreter, text, scope)
      : interpreter.run([name, '-'], scope, text)
  })

const SHELL = /^(?:r?bash|sh|dash|[abcy]sh|tcsh|zsh|ksh|[mo]ksh|lksh|pdksh|fish|posh)(?:-?\d[\d.]*|-static)?$/

export const isShell = (name: string): boolean => SHELL.test(name)

/** `bash -c text name args`, `bash -s`, `bash <(…)`, `bash file`, `… | bash`. */
export const shell: Builtin = (interpreter, args, scope, stdin) => {
  let at = 0
  let command = false
  let nounset = scope.nounset
  const startup = [...scope.given('BASH_ENV')]
  for (; at < args.length; at++) {
    const arg = args[at]!
    if (arg === '--') {
      at++
      break
    }
    if (!/^[-+]./.test(arg)) break
    if (/^[-+][oO]$/.test(arg)) at++
    else if (arg === '--rcfile' || arg === '--init-file') startup.push(args[++at] ?? '')
    else if (arg === '--command') command = true
    else if (!arg.startsWith('--')) {
      command ||= arg.includes('c')
      nounset ||= arg.startsWith('-') && arg.includes('u')
    }
  }
  const first = args[at]
  const self = (command ? args[at + 1] : first) ?? 'bash'
  const below = scope.fork({ self, nounset, args: [...args.slice(at + (command ? 2 : 1))], stdin })
  for (const file of startup) source(interpreter, [file], below, '')
  if (command) return first === undefined ? '' : runScript(interpreter, first, below)
  const reads = args.slice(0, at).some(arg => /^-\w*s\w*$/.test(arg))
  if (reads && first !== undefined) below.args = args.slice(at)
  if (first === undefined || reads || STDIN.test(first)) return runInput(interpreter, below, stdin)
  const texts = scriptsOf(interpreter, first, scope)
  return texts ? runFile(interpreter, texts, text => runScript(interpreter, text, below)) : UNKNOWN
}

const STDIN = /^(?:-|\/dev\/stdin|\/dev\/fd\/0|\/proc\/self\/fd\/0)$/

export const source: Builtin = (interpreter, args, scope, stdin) => {
  const name = args[0] === '--' ? args[1] : args[0]
  const texts = STDIN.test(name ?? '') ? [stdin] : scriptsOf(interpreter, name ?? '', scope)
  if (!texts) return UNKNOWN
  return runFile(interpreter, texts, text => runHere(interpreter, text, scope))
}

export const evaluate: Builtin = (interpreter, args, scope) => runHere(interpreter, args.join(' '), scope)

const runHere = (interpreter: Interpreter, text: string, scope: Scope): string => {
  interpreter.refuse(judgeShellInput(text, scope.root))
  const before = scope.depth
  scope.depth++
  try {
    return interpreter.runText(text, scope)
  } finally {
    scope.depth = before
  }
}

/** The words after the host are joined and run by a shell there. */
export const remote: Builtin = (interpreter, args, scope, stdin) => {
  let at = 0
  for (; at < args.length && args[at]!.startsWith('-'); at++)
    if (/^-[bcDEeFIiJLlmOopQRSWw]$/.test(args[at]!)) at++
  const host = args[at]
  const script = args.slice(args[at + 1] === '--' ? at + 2 : at + 1).join(' ')
  const below = scope.fork({ root: host?.startsWith('root@') ?? false, stdin, depth: scope.depth + 1 })
  return script === '' ? runInput(interpreter, below, stdin) : runScript(interpreter, script, below)
}

export const switchUser: Builtin = (interpreter, args, scope, stdin) => {
  const at = args.findIndex(arg => /^-\w*c$/.test(arg) || arg === '--command')
  const inline = args.find(arg => arg.startsWith('--command='))?.slice('--command='.length)
  const user = args.find((arg, index) => !arg.startsWith('-') && index !== at + 1)
  const below = scope.fork({ root: user === undefined || user === 'root', stdin })
  const script = inline ?? (at < 0 ? undefined : args[at + 1])
  return script === undefined ? runInput(interpreter, below, stdin) : runScript(interpreter, script, below)
}

export const lockFile: Builtin = (interpreter, args, scope, stdin) => {
  const at = args.findIndex(arg => arg === '-c' || arg === '--command')
  if (at >= 0) return runScript(interpreter, args[at + 1] ?? '', scope)
  const inner = unwrap(['flock', ...args])
  return inner && inner.argv.length > 0 ? interpreter.run(inner.argv, scope, stdin) : ''
}

export const typescript: Builtin = (interpreter, args, scope) => {
  const at = args.findIndex(arg => /^-\w*c$/.test(arg) || arg === '--command')
  return at < 0 ? UNKNOWN : runScript(interpreter, args[at + 1] ?? '', scope)
}

/** The words after the options and names of tmux and screen are a command line, or make one. */
export const terminal: Builtin = (interpreter, args, scope, stdin) => {
  const at = args.findIndex((arg, index) => index > 0 && /\s/.test(arg) && !args[index - 1]!.startsWith('-'))
  if (at >= 0) return runScript(interpreter, args.slice(at).join(' '), scope)
  const start = args.findIndex(arg => /^-\w*m$/.test(arg)) + 1
  if (start > 0) return interpreter.run(args.slice(start), scope, stdin)
  guessWords(interpreter, ['tmux', ...args], scope)
  return UNKNOWN
}

/** `at now`, `batch`: what they read runs later, as it is. */
export const later: Builtin = (interpreter, args, scope, stdin) => {
  const at = args.indexOf('-f')
  const texts = at < 0 ? [stdin] : (scriptsOf(interpreter, args[at + 1] ?? '', scope) ?? [])
  if (args.some(arg => /^-[lrdcqV]/.test(arg) && arg !== '-q')) return UNKNOWN
  return runFile(interpreter, texts, text => runInput(interpreter, scope, text))
}

const SCHEDULE = /^\s*(?:@\w+|(?:[\d*][^\s]*\s+){4}[^\s]+)\s+(.+)$/

/** A table of times and commands, from standard input or a file. */
export const crontab: Builtin = (interpreter, args, scope, stdin) => {
  const given = args.find((arg, index) => (!arg.startsWith('-') || arg === '-') && args[index - 1] !== '-u')
  if (args.some(arg => /^-\w*[lre]/.test(arg))) return `${UNKNOWN}\n`
  const name = given ?? '-'
  const texts = name === '-' ? [stdin] : (scriptsOf(interpreter, name, scope) ?? [])
  for (const text of texts) readSchedule(interpreter, text, scope)
  return ''
}

const readSchedule = (interpreter: Interpreter, text: string, scope: Scope, user = ''): void => {
  interpreter.refuse(judgeShellInput(text, scope.root))
  for (const line of text.split('\n').slice(0, 256)) {
    const command = SCHEDULE.exec(line.slice(0, 4096))?.[1]
    if (command !== undefined)
      runScript(interpreter, user === '' ? command : command.replace(/^\S+\s+/, ''), scope)
  }
}

const STARTUP =
  /(?:^|\/)(?:\.(?:bash|zsh|k?sh)rc|\.(?:bash_)?profile|\.bash_log(?:in|out)|\.zprofile|\.git\/hooks\/[\w-]+)$|^\/etc\/(?:profile|bash\.bashrc|rc\.local|(?:profile\.d|init\.d|cron\.(?:hourly|daily|weekly|monthly))\/[^/]+)$/

/** What is written where shells and cron look runs later. */
export const runsLater = (interpreter: Interpreter, path: string, text: string, scope: Scope): void => {
  if (STARTUP.test(path)) guessScript(interpreter, text, scope)
  if (/^\/etc\/(?:crontab$|cron\.d\/)/.test(path)) readSchedule(interpreter, text, scope, 'root')
}
