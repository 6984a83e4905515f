import { forEachChild, type SyntaxNode } from 'unbash'
import { readFind } from './find-command.ts'
import { HOME, resolvePath, UNKNOWN, UNKNOWN_DIRECTORY } from './protected-paths.ts'
import { DOWNLOADED, type Interpreter, MAX_DEPTH } from './script-actions.ts'
import { fork, type Scope, setVariable } from './shell-scope.ts'
import { baseName, readOptions, unwrap } from './wrappers.ts'

const SHELL = /^(?:ba|da|z|k|mk|a|fi|c|tc)?sh$/
const INTERPRETER = /^(?:python[\d.]*|perl|ruby|node|php)$/
const DOWNLOADERS = new Set(['curl', 'wget', 'fetch'])
export const DECLARATIONS = new Set(['export', 'declare', 'local', 'readonly', 'typeset'])
const SILENT = new Set(['[', 'test', 'true', 'false', ':', 'mkdir', 'unset', 'shift', ...DECLARATIONS])

/** Runs a program, function or builtin with its arguments and returns its output. */
export const runArgv = (
  interpreter: Interpreter,
  argv: readonly string[],
  scope: Scope,
  stdin: string,
): string => {
  const { report, spend } = interpreter
  spend(1 + argv.length / 8)
  if (argv.length === 0) return ''
  report({ kind: 'run', argv, cwd: scope.cwd, root: scope.root })
  const name = baseName(argv[0]!)
  const args = argv.slice(1)
  const body = scope.functions.get(argv[0]!)
  if (body) return callFunction(interpreter, body, argv, scope, stdin)
  const builtin = BUILTINS.get(name)
  if (builtin) return builtin(interpreter, args, scope, stdin)
  if (SHELL.test(name)) return runShell(interpreter, args, scope, stdin)
  const wrapped = unwrap(argv)
  if (wrapped) {
    const cwd = wrapped.cwd === undefined ? scope.cwd : resolvePath(wrapped.cwd, scope.cwd)
    const inner = fork(scope, { cwd, root: wrapped.root ?? scope.root })
    for (const word of wrapped.assignments)
      setVariable(inner, word.split('=', 1)[0]!, word.slice(word.indexOf('=') + 1))
    return wrapped.script === undefined
      ? interpreter.runArgv(wrapped.argv, inner, stdin)
      : interpreter.runScript(wrapped.script, inner)
  }
  if (INTERPRETER.test(name) && args.every(arg => arg.startsWith('-') && arg !== '-c'))
    report({ kind: 'script', text: stdin, root: scope.root })
  return DOWNLOADERS.has(name) || stdin.includes(DOWNLOADED) ? DOWNLOADED : UNKNOWN
}

const callFunction = (
  { report, runNode }: Interpreter,
  body: SyntaxNode,
  argv: readonly string[],
  scope: Scope,
  stdin: string,
): string => {
  const name = argv[0]!
  if (scope.background && scope.calls.includes(name) && !isConditional(body))
    report({ kind: 'fork-bomb', name })
  if (scope.depth >= MAX_DEPTH) return UNKNOWN
  const inner = fork(scope, { depth: scope.depth + 1, background: false, calls: [...scope.calls, name] })
  setArguments(argv, inner)
  return runNode(body, inner, stdin)
}

const runShell: Builtin = ({ report, runScript }, args, scope, stdin) => {
  const at = args.findIndex(arg => /^-\w*c$/.test(arg))
  const inner = fork(scope, { nounset: scope.nounset || args.some(arg => /^-\w*u\w*$/.test(arg)) })
  if (at >= 0) {
    setArguments(args.slice(at + 2), inner)
    return runScript(args[at + 1] ?? '', inner)
  }
  const [script] = args.filter(arg => !/^[-+]/.test(arg))
  if (script === undefined || args.includes('-s')) return runScript(stdin, inner)
  if (script.includes(DOWNLOADED)) report({ kind: 'script', text: script, root: scope.root })
  return UNKNOWN
}

const runXargs: Builtin = ({ runArgv }, args, scope, stdin) => {
  const { options, rest } = readOptions(args, ['-a', '-d', '-E', '-I', '-L', '-n', '-P', '-s'])
  const words = stdin.split(/[\s\0]+/).filter(word => word !== '')
  const placeholder = options.get('-I')
  if (rest.length === 0) return UNKNOWN
  if (placeholder === undefined) return runArgv([...rest, ...words], scope, UNKNOWN)
  for (const word of words.slice(0, 16))
    runArgv(
      rest.map(arg => arg.replaceAll(placeholder, word)),
      scope,
      UNKNOWN,
    )
  return UNKNOWN
}

const runFind: Builtin = ({ runArgv }, args, scope) => {
  const { roots, commands } = readFind(args, scope.cwd)
  for (const command of commands) runArgv(command, scope, UNKNOWN)
  return roots.flatMap(root => [root, `${root}/*`]).join('\n')
}

const changeDirectory: Builtin = (_, args, scope) => {
  const target = args.find(arg => !arg.startsWith('-') || arg === '-')
  if (target === '-') scope.cwd = UNKNOWN_DIRECTORY
  else if (target !== '') scope.cwd = target === undefined ? HOME : resolvePath(target, scope.cwd)
  return ''
}

const setOptions: Builtin = (_, args, scope) => {
  if (args.some(arg => /^-\w*u/.test(arg)) || args.includes('nounset')) scope.nounset = true
  const at = args.indexOf('--')
  if (at >= 0) setArguments(['', ...args.slice(at + 1)], scope)
  return ''
}

const readVariables: Builtin = (_, args, scope) => {
  for (const name of args) if (/^\w+$/.test(name)) setVariable(scope, name, UNKNOWN)
  return ''
}

type Builtin = (interpreter: Interpreter, args: readonly string[], scope: Scope, stdin: string) => string

const BUILTINS = new Map<string, Builtin>([
  ['cd', changeDirectory],
  ['pushd', changeDirectory],
  ['popd', (shell, _, scope) => changeDirectory(shell, ['-'], scope, '')],
  ['pwd', (_, __, scope) => scope.cwd],
  ['set', setOptions],
  ['read', readVariables],
  ['eval', ({ runScript }, args, scope) => runScript(args.join(' '), scope)],
  // The script of a trap runs later, when its variables are set.
  ['trap', ({ runScript }, args, scope) => runScript(args[0] ?? '', fork(scope, { nounset: true }))],
  ['source', runShell],
  ['.', runShell],
  ['xargs', runXargs],
  ['find', runFind],
  ['echo', (_, args) => `${args.filter(arg => !/^-[neE]+$/.test(arg)).join(' ')}\n`],
  [
    'printf',
    (_, args) => (args[0]?.startsWith('-') ? UNKNOWN : args.slice(args.length > 1 ? 1 : 0).join('\n')),
  ],
  ['cat', (_, args, __, stdin) => (args.length === 0 ? stdin : UNKNOWN)],
  ['tee', (_, __, ___, stdin) => stdin],
  ...[...SILENT].map(name => [name, () => ''] as const),
])

/** The first argument is `$0`. */
const setArguments = (args: readonly string[], scope: Scope): void => {
  for (const [index, arg] of args.entries()) setVariable(scope, String(index), arg)
  if (args.length > 1) for (const name of ['@', '*']) setVariable(scope, name, args.slice(1).join(' '))
}

/** Whether a function may stop calling itself. */
const isConditional = (node: SyntaxNode): boolean => {
  let found = /^(?:If|For|While|Case|Select|AndOr)$/.test(node.type)
  if (node.type === 'Command') found ||= /^(?:return|exit|break)$/.test(node.name?.value ?? '')
  forEachChild(node, child => {
    found ||= isConditional(child)
  })
  return found
}
