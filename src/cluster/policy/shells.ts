import type { Builtin } from './commands.ts'
import type { Interpreter } from './interpret.ts'
import { judgeShellInput } from './rules.ts'
import type { Scope } from './scope.ts'
import { processOutput, UNKNOWN } from './text.ts'
import { unwrap } from './wrappers.ts'

const MAX_REENTRY = 2

export const runScript = (interpreter: Interpreter, script: string, scope: Scope): string => {
  interpreter.refuse(judgeShellInput(script, scope.root))
  return interpreter.runText(script, scope.fork({ depth: scope.depth + 1 }))
}

export const runInput = (interpreter: Interpreter, scope: Scope, stdin: string): string => {
  interpreter.refuse(judgeShellInput(stdin, scope.root))
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
    const first = text.slice(0, 120).split('\n')[0]!
    return first.startsWith('#!') && !/sh\b/.test(first) ? UNKNOWN : runScript(interpreter, text, scope)
  })

const SHELL = /^(?:r?bash|sh|dash|[abcy]sh|tcsh|zsh|ksh|[mo]ksh|lksh|pdksh|fish|posh)(?:-?\d[\d.]*|-static)?$/

export const isShell = (name: string): boolean => SHELL.test(name)

/** `bash -c text name args`, `bash -s`, `bash <(…)`, `bash file`, `… | bash`. */
export const shell: Builtin = (interpreter, args, scope, stdin) => {
  let at = 0
  let command = false
  let nounset = scope.nounset
  for (; at < args.length; at++) {
    const arg = args[at]!
    if (arg === '--') {
      at++
      break
    }
    if (!/^[-+]./.test(arg)) break
    if (/^[-+][oO]$/.test(arg) || arg === '--rcfile' || arg === '--init-file') at++
    else if (arg === '--command') command = true
    else if (!arg.startsWith('--')) {
      command ||= arg.includes('c')
      nounset ||= arg.startsWith('-') && arg.includes('u')
    }
  }
  const first = args[at]
  const self = (command ? args[at + 1] : first) ?? 'bash'
  const below = scope.fork({ self, nounset, args: [...args.slice(at + (command ? 2 : 1))], stdin })
  if (command) return first === undefined ? '' : runScript(interpreter, first, below)
  if (first === undefined || first === '-' || first === '/dev/stdin' || args.includes('-s')) {
    return runInput(interpreter, below, stdin)
  }
  const texts = scriptsOf(interpreter, first, scope)
  return texts ? runFile(interpreter, texts, text => runScript(interpreter, text, below)) : UNKNOWN
}

export const source: Builtin = (interpreter, args, scope, stdin) => {
  const name = args[0] === '--' ? args[1] : args[0]
  const texts = name === '/dev/stdin' ? [stdin] : scriptsOf(interpreter, name ?? '', scope)
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
  const script = args.slice(at + 1).join(' ')
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
  return start > 0 ? interpreter.run(args.slice(start), scope, stdin) : UNKNOWN
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
  const name = args.find((arg, index) => (!arg.startsWith('-') || arg === '-') && args[index - 1] !== '-u')
  if (name === undefined) return UNKNOWN
  const texts = name === '-' ? [stdin] : (scriptsOf(interpreter, name, scope) ?? [])
  for (const line of texts.flatMap(text => text.split('\n')).slice(0, 256)) {
    const command = SCHEDULE.exec(line.slice(0, 4096))?.[1]
    if (command !== undefined) runScript(interpreter, command, scope)
  }
  return ''
}
