import { shellQuote } from '../remote/quote.ts'
import {
  alias,
  changeDirectory,
  declare,
  print,
  read,
  readArray,
  setArguments,
  shift,
  temporary,
  trap,
  unset,
} from './builtins.ts'
import { clientOf } from './clients.ts'
import { container } from './containers.ts'
import { findCommands } from './find.ts'
import { guessOptions, guessWords } from './guess.ts'
import type { Interpreter } from './interpreter.ts'
import { awk, languageOf, sed } from './languages.ts'
import { make } from './makefile.ts'
import { parallel, xargs } from './multiply.ts'
import { outputOf } from './programs.ts'
import { isJudged } from './rules.ts'
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
import { dangerOf, isDevice, resolvePath } from './targets.ts'
import { baseName, globMatches, isGlob, UNKNOWN } from './text.ts'
import { isWrapper, unwrap } from './wrappers.ts'

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
  if ((isGlob(name) && name !== '[') || name === UNKNOWN) return anyProgram(interpreter, argv, scope)
  interpreter.refuse(interpreter.visitor.command(argv, scope))
  const known = BUILTINS.get(name) ?? (isShell(name) ? shell : languageOf(name))
  if (known !== container) guessOptions(interpreter, argv, scope, known !== undefined || isWrapper(name))
  const texts = argv[0]!.includes('/') ? interpreter.files.read(argv[0]!, scope.cwds) : undefined
  if (texts) {
    const below = scope.fork({ self: argv[0]!, args: argv.slice(1), stdin })
    return runExecutable(interpreter, texts, below)
  }
  const builtin = known ?? clientOf(name)
  if (builtin) return builtin(interpreter, argv.slice(1), scope, stdin)
  const inner = unwrap(argv)
  if (!inner) {
    guessWords(interpreter, argv, scope)
    return filtered(interpreter, argv, scope, stdin)
  }
  const root = inner.root ?? scope.root
  const elsewhere = inner.cwd
  const isSame = root === scope.root && elsewhere === undefined && inner.variables.length === 0
  const below = isSame ? scope : scope.fork({ root })
  for (const variable of inner.variables) {
    const equals = variable.indexOf('=')
    below.assign(variable.slice(0, equals), [variable.slice(equals + 1)])
  }
  if (elsewhere !== undefined) below.cwds = below.cwds.map(cwd => resolvePath(elsewhere, cwd))
  if (inner.script !== undefined) return runScript(interpreter, inner.script, below.fork({ stdin }))
  // `sudo -s` and `sudo -i` without a command read their input as a shell.
  if (inner.argv.length === 0)
    return argv.some(arg => /^-\w*[si]$|^--(?:shell|login)$/.test(arg))
      ? runInput(interpreter, below, stdin)
      : ''
  return dispatch(interpreter, inner.argv, below, stdin, name !== 'time')
}

/** A program whose name is not known is taken for the one that its words would suit, when they suit one too well. */
const anyProgram = (interpreter: Interpreter, argv: readonly string[], scope: Scope): string => {
  const pattern = baseName(argv[0]!)
  const isWanted = (name: string): boolean =>
    pattern === UNKNOWN ? name === 'rm' : globMatches(pattern, name)
  const isForced = argv.some(arg => /^-(?=\w*[rR])(?=\w*f)[rRfvd]+$/.test(arg))
  interpreter.refuse(interpreter.visitor.command(argv, scope))
  for (const name of ['rm', 'dd', 'shred', 'wipefs', 'mkfs.ext4', 'chmod', 'chown'])
    if (isWanted(name) && (isForced || pattern !== UNKNOWN))
      interpreter.refuse(interpreter.visitor.command([name, ...argv.slice(1)], scope))
  guessOptions(interpreter, argv, scope)
  guessWords(interpreter, argv, scope)
  return UNKNOWN
}

/** Whether the order and number of a program's words do not matter here, so that all they may be can go in one line. */
export const isPlain = (name: string, scope: Scope): boolean => {
  const program = baseName(name)
  return (
    !scope.functions.get(name) &&
    scope.aliases.get(name) === undefined &&
    !BUILTINS.has(program) &&
    !isJudged(program) &&
    !isShell(program) &&
    !isWrapper(program) &&
    languageOf(program) === undefined &&
    !name.includes('/')
  )
}

/** A program with a meaning of its own here; it gets the words after its name. */
export type Builtin = (
  interpreter: Interpreter,
  args: readonly string[],
  scope: Scope,
  stdin: string,
) => string

const MAX_REENTRY = 2
const POSITIONAL = ['1', '2', '3', '4', '5', '6', '7', '8', '9']

const callFunction = (
  interpreter: Interpreter,
  body: Parameters<Interpreter['runBody']>[0],
  args: string[],
  scope: Scope,
  stdin: string,
): string => {
  const entered = interpreter.active.get(body) ?? 0
  if (entered >= MAX_REENTRY) return UNKNOWN
  if (interpreter.hurried) {
    const isHarmless = (arg: string): boolean => !dangerOf(arg, scope.cwds) && !isDevice(arg, scope.cwds)
    if (interpreter.passed.has(body) && args.every(isHarmless)) return UNKNOWN
    interpreter.passed.add(body)
  }
  interpreter.active.set(body, entered + 1)
  const before = { args: scope.args, stdin: scope.stdin }
  // What was shown of its caller's parameters is not shown of its own.
  const positional = POSITIONAL.filter(name => scope.sure.get(name))
  for (const name of positional) scope.sure.delete(name)
  Object.assign(scope, { args, stdin })
  try {
    return interpreter.runBody(body, scope)
  } finally {
    interpreter.active.set(body, entered)
    Object.assign(scope, before)
    for (const name of POSITIONAL) scope.sure.delete(name)
    for (const name of positional) scope.sure.set(name, true)
  }
}

const find: Builtin = (interpreter, args, scope, stdin) => {
  for (const command of findCommands(args, scope.cwds)) interpreter.run(command, scope, '')
  return outputOf(['find', ...args], stdin)
}

/** `command -v name` asks where it is. */
const command: Builtin = (interpreter, args, scope, stdin) => {
  if (/^-\w*[vV]/.test(args[0] ?? '')) return outputOf(['which', ...args.slice(1)], stdin)
  return dispatch(interpreter, unwrap(['command', ...args])?.argv ?? [], scope, stdin, true)
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
    unset,
    read,
    mapfile: readArray,
    readarray: readArray,
    set: setArguments,
    shift,
    pwd: (_, __, scope) => `${scope.cwds.join('\n')}\n`,
    command,
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
    sed,
    gsed: sed,
    make,
    gmake: make,
    kubectl: container,
    find,
    gfind: find,
    ssh: remote,
    su: switchUser,
    flock: lockFile,
    script: typescript,
  }),
)
