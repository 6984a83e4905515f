import type { Assignment, Command, CommandArgument, Redirection, SyntaxNode } from 'unbash'
import { forEachChild } from 'unbash'
import { createExpander } from './expand-words.ts'
import { readFind } from './find-command.ts'
import { parseScript } from './parse-script.ts'
import { HOME, resolvePath, UNKNOWN, UNKNOWN_DIRECTORY } from './protected-paths.ts'
import { fork, getVariable, markTested, type Scope, setVariable } from './shell-scope.ts'
import { baseName, readOptions, unwrap } from './wrappers.ts'

/** Something that a script does, as far as its text shows. */
export type Action =
  | { kind: 'run'; argv: readonly string[]; cwd: string; root: boolean }
  | { kind: 'write'; path: string; cwd: string; append: boolean }
  /** Text that is passed to a shell or an interpreter. */
  | { kind: 'script'; text: string; root: boolean }
  | { kind: 'fork-bomb'; name: string }

/** Stands for text that comes from a server. */
export const DOWNLOADED = '\uE001'

/** Thrown when interpreting a script takes too many steps. */
export class TooComplex extends Error {}

/** A limit on steps, not on time: the verdict must not depend on the load of the computer. */
const MAX_STEPS = 200_000
const MAX_DEPTH = 12

/** Follows a script in the order in which a shell runs it and reports each action. Runs nothing. */
export const interpretScript = (source: string, scope: Scope, report: (action: Action) => void): void => {
  let steps = 0
  const spend = (count: number): void => {
    steps += count
    if (steps > MAX_STEPS) throw new TooComplex('it takes too many steps to read')
  }
  const expander = createExpander((script, at) => runAll(script.commands, fork(at)))

  const runScript = (text: string, scope: Scope): string => {
    report({ kind: 'script', text, root: scope.root })
    if (scope.depth >= MAX_DEPTH) throw new TooComplex('it is nested too deeply')
    spend(1 + text.length / 64)
    return runAll(parseScript(text).commands, fork(scope, { depth: scope.depth + 1 }))
  }

  const runAll = (nodes: readonly SyntaxNode[], scope: Scope, stdin = UNKNOWN): string =>
    nodes.map(node => run(node, scope, stdin)).join('')

  /** Returns the output of the node. */
  const run = (node: SyntaxNode, scope: Scope, stdin: string): string => {
    spend(1)
    switch (node.type) {
      case 'Statement':
        return run(node.command, node.background ? fork(scope, { background: true }) : scope, stdin)
      case 'CompoundList':
      case 'AndOr':
        return runAll(node.commands, scope, stdin)
      case 'Pipeline':
        if (node.commands.length === 1) return run(node.commands[0]!, scope, stdin)
        return node.commands.reduce((flow, part) => run(part, fork(scope, { background: true }), flow), stdin)
      case 'Command':
        return runCommand(node, scope, stdin)
      case 'Redirected':
        return run(node.command, scope, redirect(node.redirects, scope) ?? stdin)
      case 'Subshell':
        return run(node.body, fork(scope), stdin)
      case 'Function':
        scope.functions.set(node.name.value, node.body)
        return ''
      case 'For': {
        const words = node.wordlist?.flatMap(word => expander.fields(word, scope)) ?? [UNKNOWN]
        for (const word of words.slice(0, 16)) {
          setVariable(scope, node.name.value, word)
          run(node.body, scope, stdin)
        }
        return UNKNOWN
      }
      case 'TestCommand':
        markAllTested(node, scope)
        return runChildren(node, scope, stdin)
      case 'CommandExpansion':
      case 'ProcessSubstitution':
      case 'ArithmeticCommandExpansion':
        return node.script ? runAll(node.script.commands, fork(scope), stdin) : ''
      default:
        return runChildren(node, scope, stdin)
    }
  }

  const runChildren = (node: SyntaxNode, scope: Scope, stdin: string): string => {
    let output = ''
    forEachChild(node, child => {
      output += run(child, scope, stdin)
    })
    return output
  }

  const runCommand = (node: Command, scope: Scope, stdin: string): string => {
    const assignments = node.prefix.filter(part => part.type === 'Assignment')
    if (!node.name) for (const part of assignments) assign(part, scope)
    const input = redirect(node.redirects, scope) ?? stdin
    if (!node.name) return ''
    const inner = assignments.length > 0 ? fork(scope) : scope
    for (const part of assignments) assign(part, inner)
    const argv = [node.name, ...node.args].flatMap(word => argument(word, scope))
    const name = argv[0] ?? ''
    if (name === '[' || name === 'test') markAllTested(node, scope)
    if (DECLARATIONS.has(name))
      for (const part of node.args) if (part.type === 'Assignment') assign(part, scope)
    return runArgv(argv, inner, input)
  }

  const runArgv = (argv: readonly string[], scope: Scope, stdin: string): string => {
    spend(1 + argv.length / 8)
    if (argv.length === 0) return ''
    report({ kind: 'run', argv, cwd: scope.cwd, root: scope.root })
    const name = baseName(argv[0]!)
    const args = argv.slice(1)
    const body = scope.functions.get(argv[0]!)
    if (body) return callFunction(body, argv, scope, stdin)
    const builtin = BUILTINS.get(name)
    if (builtin) return builtin(args, scope, stdin)
    if (SHELL.test(name)) return runShell(args, scope, stdin)
    const wrapped = unwrap(argv)
    if (wrapped) {
      const cwd = wrapped.cwd === undefined ? scope.cwd : resolvePath(wrapped.cwd, scope.cwd)
      const inner = fork(scope, { cwd, root: wrapped.root ?? scope.root })
      for (const word of wrapped.assignments)
        setVariable(inner, word.split('=', 1)[0]!, word.slice(word.indexOf('=') + 1))
      return wrapped.script === undefined
        ? runArgv(wrapped.argv, inner, stdin)
        : runScript(wrapped.script, inner)
    }
    if (INTERPRETER.test(name) && args.every(arg => arg.startsWith('-') && arg !== '-c'))
      report({ kind: 'script', text: stdin, root: scope.root })
    return DOWNLOADERS.has(name) || stdin.includes(DOWNLOADED) ? DOWNLOADED : UNKNOWN
  }

  const callFunction = (body: SyntaxNode, argv: readonly string[], scope: Scope, stdin: string): string => {
    const name = argv[0]!
    if (scope.background && scope.calls.includes(name) && !isConditional(body))
      report({ kind: 'fork-bomb', name })
    if (scope.depth >= MAX_DEPTH) return UNKNOWN
    const inner = fork(scope, { depth: scope.depth + 1, background: false, calls: [...scope.calls, name] })
    setArguments(argv, inner)
    return run(body, inner, stdin)
  }

  const runShell = (args: readonly string[], scope: Scope, stdin: string): string => {
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

  const runXargs = (args: readonly string[], scope: Scope, stdin: string): string => {
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

  const runFind = (args: readonly string[], scope: Scope): string => {
    const { roots, commands } = readFind(args, scope.cwd)
    for (const command of commands) runArgv(command, scope, UNKNOWN)
    return roots.flatMap(root => [root, `${root}/*`]).join('\n')
  }

  const assign = (part: Assignment, scope: Scope): void => {
    const { value } = part
    const words = value.type === 'Word' ? [value] : value.elements
    const text = words.map(word => expander.fields(word, scope).join(' ')).join(' ')
    const before = part.append ? (getVariable(scope, part.name) ?? '') : ''
    setVariable(scope, part.name, part.index ? UNKNOWN : before + text)
  }

  const argument = (arg: CommandArgument, scope: Scope): string[] =>
    arg.type === 'Word'
      ? expander.fields(arg, scope)
      : [`${arg.name}=${arg.value.type === 'Word' ? expander.fields(arg.value, scope).join(' ') : UNKNOWN}`]

  /** Reports the files that redirections write to; returns the redirected input. */
  const redirect = (redirects: readonly Redirection[], scope: Scope): string | undefined => {
    let input: string | undefined
    for (const item of redirects) {
      if (item.type === 'HereDoc')
        input = item.body.parts ? expander.text(item.body.parts, scope) : item.body.text
      else if (item.type === 'HereString')
        input = item.target && expander.fields(item.target, scope).join(' ')
      else {
        const [path] = item.target ? expander.fields(item.target, scope) : []
        if (item.operator === '<') input = path?.includes(DOWNLOADED) ? DOWNLOADED : UNKNOWN
        else if (path !== undefined && !/^\d*-?$/.test(path))
          report({ kind: 'write', path, cwd: scope.cwd, append: item.operator.endsWith('>>') })
      }
    }
    return input
  }

  const changeDirectory = (args: readonly string[], scope: Scope): string => {
    const target = args.find(arg => !arg.startsWith('-') || arg === '-')
    if (target === '-') scope.cwd = UNKNOWN_DIRECTORY
    else if (target !== '') scope.cwd = target === undefined ? HOME : resolvePath(target, scope.cwd)
    return ''
  }

  const setOptions = (args: readonly string[], scope: Scope): string => {
    if (args.some(arg => /^-\w*u/.test(arg)) || args.includes('nounset')) scope.nounset = true
    const at = args.indexOf('--')
    if (at >= 0) setArguments(['', ...args.slice(at + 1)], scope)
    return ''
  }

  const readVariables = (args: readonly string[], scope: Scope): string => {
    for (const name of args) if (/^\w+$/.test(name)) setVariable(scope, name, UNKNOWN)
    return ''
  }

  const BUILTINS = new Map<string, (args: readonly string[], scope: Scope, stdin: string) => string>([
    ['cd', changeDirectory],
    ['pushd', changeDirectory],
    ['popd', (_, scope) => changeDirectory(['-'], scope)],
    ['pwd', (_, scope) => scope.cwd],
    ['set', setOptions],
    ['read', readVariables],
    ['eval', (args, scope) => runScript(args.join(' '), scope)],
    // The script of a trap runs later, when its variables are set.
    ['trap', (args, scope) => runScript(args[0] ?? '', fork(scope, { nounset: true }))],
    ['source', runShell],
    ['.', runShell],
    ['xargs', runXargs],
    ['find', (args, scope) => runFind(args, scope)],
    ['echo', args => `${args.filter(arg => !/^-[neE]+$/.test(arg)).join(' ')}\n`],
    ['printf', args => (args[0]?.startsWith('-') ? UNKNOWN : args.slice(args.length > 1 ? 1 : 0).join('\n'))],
    ['cat', (args, _, stdin) => (args.length === 0 ? stdin : UNKNOWN)],
    ['tee', (_, __, stdin) => stdin],
    ...[...SILENT].map(name => [name, () => ''] as const),
  ])

  runScript(source, scope)
}

const SHELL = /^(?:ba|da|z|k|mk|a|fi|c|tc)?sh$/
const INTERPRETER = /^(?:python[\d.]*|perl|ruby|node|php)$/
const DOWNLOADERS = new Set(['curl', 'wget', 'fetch'])
const DECLARATIONS = new Set(['export', 'declare', 'local', 'readonly', 'typeset'])
const SILENT = new Set(['[', 'test', 'true', 'false', ':', 'mkdir', 'unset', 'shift', ...DECLARATIONS])

/** The first argument is `$0`. */
const setArguments = (args: readonly string[], scope: Scope): void => {
  for (const [index, arg] of args.entries()) setVariable(scope, String(index), arg)
  if (args.length > 1) for (const name of ['@', '*']) setVariable(scope, name, args.slice(1).join(' '))
}

const markAllTested = (node: SyntaxNode, scope: Scope): void => {
  if (node.type === 'SimpleExpansion') markTested(scope, node.text.slice(1))
  if (node.type === 'ParameterExpansion') markTested(scope, node.parameter)
  forEachChild(node, child => markAllTested(child, scope))
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
