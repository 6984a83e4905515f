import type { Assignment, Command, CommandArgument, Redirection, SyntaxNode } from 'unbash'
import { forEachChild } from 'unbash'
import { findCommands, findRoots } from './find.ts'
import { parseScript } from './parse.ts'
import { HOME, resolvePath, UNKNOWN, UNKNOWN_DIRECTORY } from './paths.ts'
import type { Scope } from './scope.ts'
import { createExpander } from './words.ts'
import { baseName, readOptions, unwrap } from './wrappers.ts'

/** What a script would do, as far as its text tells, wrappers on and off. */
export type Action =
  | { kind: 'run'; argv: readonly string[]; cwd: string; root: boolean }
  | { kind: 'write'; path: string; cwd: string; append: boolean }
  /** Text that a shell or an interpreter would run. */
  | { kind: 'script'; text: string; root: boolean }
  | { kind: 'fork-bomb'; name: string }

/** Stands for text that a server sends. */
export const DOWNLOADED = '\uE001'

/** Thrown when a script costs more to read than anybody would want to wait for. */
export class TooComplex extends Error {}

/** Counted, not timed, so that a verdict does not depend on the load of the computer. */
const MAX_STEPS = 200_000
const MAX_DEPTH = 12

/** Reads a script in the order in which a shell would run it, and reports each action. */
export const readActions = (source: string, scope: Scope, report: (action: Action) => void): void => {
  let steps = 0
  const spend = (count: number): void => {
    steps += count
    if (steps > MAX_STEPS) throw new TooComplex('it takes too many steps to read')
  }
  const expander = createExpander((script, at) => runAll(script.commands, at.fork()))

  const runScript = (text: string, scope: Scope): string => {
    report({ kind: 'script', text, root: scope.root })
    if (scope.depth >= MAX_DEPTH) throw new TooComplex('it is nested too deeply')
    spend(1 + text.length / 64)
    const script = parseScript(text)
    if (script.forkBomb) report({ kind: 'fork-bomb', name: script.forkBomb })
    return runAll(script.tree.commands, scope.fork({ depth: scope.depth + 1 }))
  }

  const runAll = (nodes: readonly SyntaxNode[], scope: Scope, stdin = UNKNOWN): string =>
    nodes.map(node => run(node, scope, stdin)).join('')

  /** Returns what the node prints. */
  const run = (node: SyntaxNode, scope: Scope, stdin: string): string => {
    spend(1)
    switch (node.type) {
      case 'Statement':
        return run(node.command, node.background ? scope.fork() : scope, stdin)
      case 'CompoundList':
      case 'AndOr':
        return runAll(node.commands, scope, stdin)
      case 'Pipeline':
        if (node.commands.length === 1) return run(node.commands[0]!, scope, stdin)
        return node.commands.reduce((flow, command) => run(command, scope.fork(), flow), stdin)
      case 'Command':
        return runCommand(node, scope, stdin)
      case 'Redirected':
        return run(node.command, scope, redirect(node.redirects, scope) ?? stdin)
      case 'Subshell':
        return run(node.body, scope.fork(), stdin)
      case 'Function':
        scope.functions.set(node.name.value, node.body)
        return ''
      case 'For': {
        const words = node.wordlist?.flatMap(word => expander.fields(word, scope)) ?? [UNKNOWN]
        for (const word of words.slice(0, 16)) {
          scope.set(node.name.value, word)
          run(node.body, scope, stdin)
        }
        return UNKNOWN
      }
      case 'TestCommand':
        markTested(node, scope)
        return runChildren(node, scope, stdin)
      case 'CommandExpansion':
      case 'ProcessSubstitution':
      case 'ArithmeticCommandExpansion':
        return node.script ? runAll(node.script.commands, scope.fork(), stdin) : ''
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
    const inner = assignments.length > 0 ? scope.fork() : scope
    for (const part of assignments) assign(part, inner)
    const argv = [node.name, ...node.args].flatMap(word => argument(word, scope))
    const name = argv[0] ?? ''
    if (name === '[' || name === 'test') markTested(node, scope)
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
    if (body) return callFunction(body, args, scope, stdin)
    const builtin = BUILTINS.get(name)
    if (builtin) return builtin(args, scope, stdin)
    if (SHELL.test(name)) return runShell(args, scope, stdin)
    const wrapped = unwrap(argv)
    if (wrapped) {
      const cwd = wrapped.cwd === undefined ? scope.cwd : resolvePath(wrapped.cwd, scope.cwd)
      const inner = scope.fork({ cwd, root: wrapped.root ?? scope.root })
      for (const word of wrapped.assignments)
        inner.set(word.split('=', 1)[0]!, word.slice(word.indexOf('=') + 1))
      return wrapped.script === undefined
        ? runArgv(wrapped.argv, inner, stdin)
        : runScript(wrapped.script, inner)
    }
    if (INTERPRETER.test(name) && args.every(arg => arg.startsWith('-') && arg !== '-c'))
      report({ kind: 'script', text: stdin, root: scope.root })
    return DOWNLOADERS.has(name) || stdin.includes(DOWNLOADED) ? DOWNLOADED : UNKNOWN
  }

  const callFunction = (body: SyntaxNode, args: readonly string[], scope: Scope, stdin: string): string => {
    if (scope.depth >= MAX_DEPTH) return UNKNOWN
    const inner = scope.fork({ depth: scope.depth + 1 })
    setArguments(['', ...args], inner)
    return run(body, inner, stdin)
  }

  const runShell = (args: readonly string[], scope: Scope, stdin: string): string => {
    const at = args.findIndex(arg => /^-\w*c$/.test(arg))
    const inner = scope.fork({ nounset: scope.nounset || args.some(arg => /^-\w*u\w*$/.test(arg)) })
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
    for (const command of findCommands(args, scope.cwd)) runArgv(command, scope, UNKNOWN)
    return findRoots(args, scope.cwd)
      .flatMap(root => [root, `${root}/*`])
      .join('\n')
  }

  const assign = (part: Assignment, scope: Scope): void => {
    const { value } = part
    const words = value.type === 'Word' ? [value] : value.elements
    const text = words.map(word => expander.fields(word, scope).join(' ')).join(' ')
    if (part.index) scope.set(part.name, UNKNOWN)
    else scope.set(part.name, part.append ? `${scope.get(part.name) ?? ''}${text}` : text)
  }

  const argument = (arg: CommandArgument, scope: Scope): string[] =>
    arg.type === 'Word'
      ? expander.fields(arg, scope)
      : [`${arg.name}=${arg.value.type === 'Word' ? expander.fields(arg.value, scope).join(' ') : UNKNOWN}`]

  /** Reports the files that are written; returns what is given as input. */
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
    for (const name of args) if (/^\w+$/.test(name)) scope.set(name, UNKNOWN)
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
    // Runs later, when the variables are set.
    ['trap', (args, scope) => runScript(args[0] ?? '', scope.fork({ nounset: true }))],
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

/** `$0` is the first. */
const setArguments = (args: readonly string[], scope: Scope): void => {
  for (const [index, arg] of args.entries()) scope.set(String(index), arg)
  if (args.length > 1) for (const name of ['@', '*']) scope.set(name, args.slice(1).join(' '))
}

const markTested = (node: SyntaxNode, scope: Scope): void => {
  if (node.type === 'SimpleExpansion') scope.markTested(node.text.slice(1))
  if (node.type === 'ParameterExpansion') scope.markTested(node.parameter)
  forEachChild(node, child => markTested(child, scope))
}
