import { shellQuote } from '../remote/quote.ts'
import { container } from './containers.ts'
import { findCommands } from './find.ts'
import type { Interpreter } from './interpret.ts'
import { awk, backtickLanguage, otherLanguage } from './languages.ts'
import { parallel, xargs } from './multiply.ts'
import { outputOf } from './programs.ts'
import type { Scope } from './scope.ts'
import {
  crontab,
  evaluate,
  isShell,
  later,
  lockFile,
  remote,
  runExecutable,
  runInput,
  runScript,
  shell,
  source,
  switchUser,
  terminal,
  typescript,
} from './shells.ts'
import { blocks, cat, copy, download, filtered, tee, wget } from './storage.ts'
import { resolvePath } from './targets.ts'
import { baseName, HOME, UNKNOWN } from './text.ts'
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
    return interpreter.runText([alias, ...argv.slice(1).map(shellQuote)].join(' '), scope)
  }
  interpreter.refuse(interpreter.visitor.command(argv, scope))
  const texts = argv[0]!.includes('/') ? interpreter.files.read(argv[0]!, scope.cwds) : undefined
  if (texts) {
    const below = scope.fork({ self: argv[0]!, args: argv.slice(1), stdin })
    return runExecutable(interpreter, texts, below)
  }
  const builtin = BUILTINS.get(name) ?? (isShell(name) ? shell : undefined)
  if (builtin) return builtin(interpreter, argv.slice(1), scope, stdin)
  const inner = unwrap(argv)
  if (!inner) return filtered(interpreter, argv, scope, stdin)
  const root = inner.root ?? scope.root
  const elsewhere = inner.cwd
  const below = root === scope.root && elsewhere === undefined ? scope : scope.fork({ root })
  if (elsewhere !== undefined) below.cwds = below.cwds.map(cwd => resolvePath(elsewhere, cwd))
  if (inner.script !== undefined) return runScript(interpreter, inner.script, below.fork({ stdin }))
  // `sudo -s` and `sudo -i` without a command read their input as a shell.
  if (inner.argv.length === 0)
    return argv.some(arg => /^-\w*[si]$|^--(?:shell|login)$/.test(arg))
      ? runInput(interpreter, below, stdin)
      : ''
  return dispatch(interpreter, inner.argv, below, stdin, name !== 'time')
}

/** A program with a meaning of its own here; it gets the words after its name. */
export type Builtin = (
  interpreter: Interpreter,
  args: readonly string[],
  scope: Scope,
  stdin: string,
) => string

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
  const positional = [...scope.sure].filter(name => /^\d/.test(name))
  for (const name of positional) scope.sure.delete(name)
  Object.assign(scope, { args, stdin })
  try {
    return interpreter.runBody(body, scope)
  } finally {
    interpreter.active.set(body, entered)
    Object.assign(scope, before)
    for (const name of scope.sure) if (/^\d/.test(name)) scope.sure.delete(name)
    for (const name of positional) scope.sure.add(name)
  }
}

const changeDirectory: Builtin = (_, args, scope) => {
  const target = args.find(arg => !/^-[LPe@n]+$/.test(arg) && arg !== '--') ?? HOME
  const next = target === '-' ? [UNKNOWN] : scope.cwds.map(cwd => resolvePath(target, cwd))
  // `cd x || exit` is a branch only on paper: after it the directory is x.
  scope.cwds = [...new Set(scope.conditional ? [...scope.cwds, ...next] : next)].slice(-4)
  return ''
}

const declare: Builtin = (_, args, scope) => {
  const refers = args.some(arg => /^-\w*n/.test(arg))
  for (const arg of args) {
    const match = /^([A-Za-z_]\w*)=([\s\S]*)$/.exec(arg)
    if (match && refers) scope.refer(match[1]!, match[2]!)
    else if (match && !scope.lookup(match[1]!).some(value => value !== ''))
      scope.assign(match[1]!, [match[2]!])
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
  if (args.some((arg, index) => /^-[a-z]*u/.test(arg) || (arg === 'nounset' && args[index - 1] === '-o')))
    scope.nounset = true
  const marker = args.indexOf('--')
  if (marker >= 0) scope.args = args.slice(marker + 1)
  return ''
}

const find: Builtin = (interpreter, args, scope, stdin) => {
  for (const command of findCommands(args)) interpreter.run(command, scope, '')
  return outputOf(['find', ...args], stdin)
}

/** `printf -v name format…` prints into a variable. */
const print: Builtin = (_, args, scope, stdin) => {
  const into = args[0] === '-v' ? args[1] : args[0]?.startsWith('-v') ? args[0].slice(2) : undefined
  if (into === undefined) return outputOf(['printf', ...args], stdin)
  scope.assign(into, [outputOf(['printf', ...args.slice(args[0] === '-v' ? 2 : 1)], stdin)])
  return ''
}

/** Each call names another file, which is not known but the same wherever the script uses it. */
const temporary: Builtin = (interpreter, args) => {
  interpreter.temporaries++
  return `/tmp/tmp.${interpreter.temporaries}${args.some(arg => /^-\w*d/.test(arg)) ? 'd' : ''}\n`
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
    mktemp: temporary,
    xargs,
    parallel,
    tmux: terminal,
    screen: terminal,
    at: later,
    batch: later,
    crontab,
    tee,
    cat,
    cp: copy,
    mv: copy,
    ln: copy,
    install: copy,
    dd: blocks,
    curl: download,
    wget,
    docker: container,
    podman: container,
    nerdctl: container,
    awk,
    gawk: awk,
    mawk: awk,
    nawk: awk,
    find,
    gfind: find,
    ssh: remote,
    su: switchUser,
    flock: lockFile,
    script: typescript,
    python: otherLanguage,
    python2: otherLanguage,
    python3: otherLanguage,
    perl: backtickLanguage,
    ruby: backtickLanguage,
    node: otherLanguage,
    php: backtickLanguage,
    lua: otherLanguage,
    osascript: otherLanguage,
    deno: otherLanguage,
    bun: otherLanguage,
  }),
)
