import { findCommands } from './find.ts'
import type { Interpreter } from './interpret.ts'
import { outputOf } from './programs.ts'
import { judgeShellInput } from './rules.ts'
import type { Scope } from './scope.ts'
import { resolvePath } from './targets.ts'
import { baseName, fileKey, HOME, processOutput, UNKNOWN } from './text.ts'
import { unwrap } from './wrappers.ts'

/** Follows one resolved command line to what it really runs, and returns what it prints as far as that is known. */
export const dispatch = (
  interpreter: Interpreter,
  argv: readonly string[],
  scope: Scope,
  stdin: string,
  /** Behind `command`, `sudo`… stands a program, whatever functions are called the same. */
  isProgram = false,
): string => {
  interpreter.tick()
  const name = baseName(argv[0] ?? '')
  if (name === '') return ''
  const body = isProgram ? undefined : scope.functions.get(argv[0]!)
  if (body) return callFunction(interpreter, body, argv.slice(1), scope, stdin)
  const alias = scope.aliases.get(argv[0]!)
  if (alias !== undefined) {
    scope.aliases.delete(argv[0]!)
    return interpreter.runText([alias, ...argv.slice(1).map(quote)].join(' '), scope)
  }
  interpreter.refuse(interpreter.visitor.command(argv, scope))
  const builtin = BUILTINS.get(name) ?? (SHELLS.has(name) ? shell : undefined)
  if (builtin) return builtin(interpreter, argv.slice(1), scope, stdin)
  const written = argv[0]!.includes('/') ? interpreter.files.get(fileKey(argv[0]!)) : undefined
  if (written !== undefined)
    return runScript(interpreter, written, scope.fork({ args: [...argv.slice(1)], stdin }))
  const inner = unwrap(argv)
  if (!inner) return outputOf(argv, stdin)
  const root = inner.root ?? scope.root
  const elsewhere = inner.cwd !== undefined
  const below = root === scope.root && !elsewhere ? scope : scope.fork({ root })
  if (inner.cwd !== undefined) below.cwds = below.cwds.map(cwd => resolvePath(inner.cwd!, cwd))
  if (inner.script !== undefined) return runScript(interpreter, inner.script, below.fork({ stdin }))
  // `sudo -s` and `sudo -i` without a command read their input as a shell.
  if (inner.argv.length === 0)
    return argv.some(arg => /^-\w*[si]$|^--(?:shell|login)$/.test(arg))
      ? runInput(interpreter, below, stdin)
      : ''
  return dispatch(interpreter, inner.argv, below, stdin, name !== 'time')
}

type Builtin = (interpreter: Interpreter, args: readonly string[], scope: Scope, stdin: string) => string

const MAX_REENTRY = 2

const callFunction = (
  interpreter: Interpreter,
  body: Parameters<Interpreter['runBody']>[0],
  args: string[],
  scope: Scope,
  stdin: string,
): string => {
  const entered = interpreter.active.get(body) ?? 0
  if (entered >= MAX_REENTRY) return UNKNOWN
  interpreter.active.set(body, entered + 1)
  const before = { args: scope.args, stdin: scope.stdin }
  Object.assign(scope, { args, stdin })
  try {
    return interpreter.runBody(body, scope)
  } finally {
    interpreter.active.set(body, entered)
    Object.assign(scope, before)
  }
}

const runScript = (interpreter: Interpreter, script: string, scope: Scope): string => {
  interpreter.refuse(judgeShellInput(script, scope.root))
  return interpreter.runText(script, scope.fork({ depth: scope.depth + 1 }))
}

const runInput = (interpreter: Interpreter, scope: Scope, stdin: string): string => {
  interpreter.refuse(judgeShellInput(stdin, scope.root))
  return stdin.includes(UNKNOWN) && stdin.length < 2
    ? UNKNOWN
    : interpreter.runText(stdin, scope.fork({ depth: scope.depth + 1 }))
}

const SHELLS = new Set(['sh', 'bash', 'dash', 'ash', 'zsh', 'ksh', 'mksh', 'rbash', 'fish'])

/** `bash -c text name args`, `bash -s`, `bash <(…)`, `… | bash`. */
const shell: Builtin = (interpreter, args, scope, stdin) => {
  let at = 0
  let command = false
  for (; at < args.length; at++) {
    const arg = args[at]!
    if (arg === '--') {
      at++
      break
    }
    if (!/^[-+]./.test(arg)) break
    if (/^[-+][oO]$/.test(arg) || arg === '--rcfile' || arg === '--init-file') at++
    else if (!arg.startsWith('--') && arg.includes('c')) command = true
  }
  const first = args[at]
  const below = scope.fork({ args: [...args.slice(at + (command ? 2 : 1))], stdin })
  if (command) {
    if (args[at + 1] !== undefined) below.assign('0', [args[at + 1]!])
    return first === undefined ? '' : runScript(interpreter, first, below)
  }
  if (first === undefined || first === '-' || first === '/dev/stdin' || args.includes('-s')) {
    return runInput(interpreter, below, stdin)
  }
  const text = processOutput(first, interpreter.processes) ?? interpreter.files.get(fileKey(first))
  return text === undefined ? UNKNOWN : runScript(interpreter, text, below)
}

/** Interpreters of other languages: what comes from the network to root, and what their one-liners give to a shell. */
const otherLanguage: Builtin = (interpreter, args, scope, stdin) => {
  const operand = args.find(arg => !arg.startsWith('-'))
  if (operand === undefined || operand === '-') interpreter.refuse(judgeShellInput(stdin, scope.root))
  for (const arg of args) {
    interpreter.refuse(judgeShellInput(processOutput(arg, interpreter.processes) ?? arg, scope.root))
    for (const [, , script] of arg.matchAll(SHELL_CALL)) runScript(interpreter, script!, scope.fork())
    for (const [, , path] of arg.matchAll(REMOVING_CALL))
      dispatch(interpreter, ['rm', '-rf', path!], scope, '', true)
  }
  return UNKNOWN
}

const SHELL_CALL =
  /\b(?:system|exec\w*|popen|shell_exec|passthru|run|call|check_\w+|spawn\w*|do shell script)\b[\s(]*(["'`])(.{1,4096}?)\1/gs
const REMOVING_CALL = /\b(?:rmtree|remove_tree|rm_rf|rmSync|rm)\b[\s(]*(["'`])(.{1,4096}?)\1/gs

const changeDirectory: Builtin = (_, args, scope) => {
  const target = args.find(arg => !/^-[LPe@n]+$/.test(arg) && arg !== '--') ?? HOME
  const next = target === '-' ? [UNKNOWN] : scope.cwds.map(cwd => resolvePath(target, cwd))
  // `cd x || exit` is a branch only on paper: after it the directory is x.
  scope.cwds = [...new Set(scope.conditional ? [...scope.cwds, ...next] : next)].slice(-4)
  return ''
}

const declare: Builtin = (_, args, scope) => {
  for (const arg of args) {
    const match = /^([A-Za-z_]\w*)=([\s\S]*)$/.exec(arg)
    if (match && !scope.lookup(match[1]!).some(value => value !== '')) scope.assign(match[1]!, [match[2]!])
  }
  return ''
}

const read: Builtin = (_, args, scope, stdin) => {
  const names = args.filter(arg => /^[A-Za-z_]\w*$/.test(arg))
  const lines = stdin
    .split('\n')
    .filter(line => line !== '')
    .slice(0, 8)
  for (const name of names.length > 0 ? names : ['REPLY'])
    scope.assign(name, lines.length > 0 ? lines : [UNKNOWN])
  return ''
}

const readArray: Builtin = (_, args, scope, stdin) => {
  const name = args.findLast(arg => /^[A-Za-z_]\w*$/.test(arg)) ?? 'MAPFILE'
  scope.assignArray(
    name,
    stdin
      .split('\n')
      .filter(line => line !== '')
      .slice(0, 64),
  )
  return ''
}

const setArguments: Builtin = (_, args, scope) => {
  const marker = args.indexOf('--')
  if (marker >= 0) scope.args = args.slice(marker + 1)
  return ''
}

const source: Builtin = (interpreter, args, scope, stdin) => {
  const [file = ''] = args
  const known = processOutput(file, interpreter.processes) ?? interpreter.files.get(fileKey(file))
  const text = file === '/dev/stdin' ? stdin : known
  if (text === undefined) return UNKNOWN
  interpreter.refuse(judgeShellInput(text, scope.root))
  return interpreter.runText(text, scope)
}

const evaluate: Builtin = (interpreter, args, scope) => {
  const text = args.join(' ')
  interpreter.refuse(judgeShellInput(text, scope.root))
  const before = scope.depth
  scope.depth++
  try {
    return interpreter.runText(text, scope)
  } finally {
    scope.depth = before
  }
}

/** xargs puts what it reads behind the words it has. */
const xargs: Builtin = (interpreter, args, scope, stdin) => {
  let at = 0
  let token: string | undefined
  for (; at < args.length && args[at]!.startsWith('-'); at++) {
    const arg = args[at]!
    if (/^-[IiJ]/.test(arg)) token = arg.length > 2 ? arg.slice(2) : arg === '-i' ? '{}' : args[++at]
    else if (
      /^-[nPLsdaER]$/.test(arg) ||
      ['--max-args', '--max-procs', '--arg-file', '--delimiter'].includes(arg)
    )
      at++
  }
  const command = args.slice(at)
  const read = stdin
    .split(/[\s\0]+/)
    .filter(field => field !== '')
    .slice(0, 64)
  const items = read.length > 0 ? read : [UNKNOWN]
  const argv = command.length > 0 ? command : ['echo']
  if (token === undefined || token === '') return dispatch(interpreter, [...argv, ...items], scope, '')
  return items
    .slice(0, 16)
    .map(item =>
      dispatch(
        interpreter,
        argv.map(word => word.replaceAll(token, item)),
        scope,
        '',
      ),
    )
    .join('')
}

const find: Builtin = (interpreter, args, scope, stdin) => {
  for (const command of findCommands(args)) dispatch(interpreter, command, scope, '')
  return outputOf(['find', ...args], stdin)
}

/** The words after the host are joined and run by a shell there. */
const remote: Builtin = (interpreter, args, scope, stdin) => {
  let at = 0
  for (; at < args.length && args[at]!.startsWith('-'); at++)
    if (/^-[bcDEeFIiJLlmOopQRSWw]$/.test(args[at]!)) at++
  const host = args[at]
  const script = args.slice(at + 1).join(' ')
  const below = scope.fork({ root: host?.startsWith('root@') ?? false, stdin, depth: scope.depth + 1 })
  return script === '' ? runInput(interpreter, below, stdin) : runScript(interpreter, script, below)
}

const switchUser: Builtin = (interpreter, args, scope, stdin) => {
  const at = args.findIndex(arg => /^-\w*c$/.test(arg) || arg === '--command')
  const inline = args.find(arg => arg.startsWith('--command='))?.slice('--command='.length)
  const user = args.find((arg, index) => !arg.startsWith('-') && index !== at + 1)
  const below = scope.fork({ root: user === undefined || user === 'root', stdin })
  const script = inline ?? (at < 0 ? undefined : args[at + 1])
  return script === undefined ? runInput(interpreter, below, stdin) : runScript(interpreter, script, below)
}

const lockFile: Builtin = (interpreter, args, scope, stdin) => {
  const at = args.findIndex(arg => arg === '-c' || arg === '--command')
  if (at >= 0) return runScript(interpreter, args[at + 1] ?? '', scope)
  const inner = unwrap(['flock', ...args])
  return inner && inner.argv.length > 0 ? dispatch(interpreter, inner.argv, scope, stdin) : ''
}

const typescript: Builtin = (interpreter, args, scope) => {
  const at = args.findIndex(arg => /^-\w*c$/.test(arg) || arg === '--command')
  return at < 0 ? UNKNOWN : runScript(interpreter, args[at + 1] ?? '', scope)
}

const trap: Builtin = (interpreter, args) => {
  const script = args.find(arg => arg !== '--')
  if (script && script !== '-' && args.length > 1) interpreter.traps.push(script)
  return ''
}

const alias: Builtin = (_, args, scope) => {
  for (const arg of args) {
    const equals = arg.indexOf('=')
    if (equals > 0) scope.aliases.set(arg.slice(0, equals), arg.slice(equals + 1))
  }
  return ''
}

/** `printf -v x …` prints into a variable. */
const print: Builtin = (_, args, scope, stdin) => {
  const [flag, name = '', ...rest] = args
  if (flag !== '-v') return outputOf(['printf', ...args], stdin)
  scope.assign(name, [outputOf(['printf', ...rest], stdin)])
  return ''
}

/** The words after the options and names of tmux and screen are a command line, or make one. */
const terminal: Builtin = (interpreter, args, scope, stdin) => {
  const at = args.findIndex((arg, index) => index > 0 && /\s/.test(arg) && !args[index - 1]!.startsWith('-'))
  if (at >= 0) return runScript(interpreter, args.slice(at).join(' '), scope)
  const start = args.findIndex(arg => /^-\w*m$/.test(arg)) + 1
  return start > 0 ? dispatch(interpreter, args.slice(start), scope, stdin, true) : UNKNOWN
}

const later: Builtin = (interpreter, _, scope, stdin) => runInput(interpreter, scope.fork({ stdin }), stdin)

const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

const BUILTINS = new Map(
  Object.entries<Builtin>({
    cd: changeDirectory,
    pushd: changeDirectory,
    popd: (_, __, scope) => {
      scope.cwds = [UNKNOWN]
      return ''
    },
    export: declare,
    declare,
    local: declare,
    readonly: declare,
    typeset: declare,
    unset: (_, args, scope) => {
      for (const name of args) scope.unset(name)
      return ''
    },
    read,
    mapfile: readArray,
    readarray: readArray,
    set: setArguments,
    shift: (_, args, scope) => {
      scope.args = scope.args.slice(Number(args[0] ?? 1) || 1)
      return ''
    },
    eval: evaluate,
    source,
    '.': source,
    trap,
    alias,
    printf: print,
    tmux: terminal,
    screen: terminal,
    at: later,
    batch: later,
    xargs,
    find,
    gfind: find,
    ssh: remote,
    su: switchUser,
    flock: lockFile,
    script: typescript,
    python: otherLanguage,
    python3: otherLanguage,
    perl: otherLanguage,
    ruby: otherLanguage,
    node: otherLanguage,
    php: otherLanguage,
    awk: otherLanguage,
    gawk: otherLanguage,
    mawk: otherLanguage,
    lua: otherLanguage,
    osascript: otherLanguage,
  }),
)
