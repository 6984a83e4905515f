import type { Assignment, Command, CommandArgument, Redirection, SyntaxNode } from 'unbash'
import { forEachChild } from 'unbash'
import { UNKNOWN } from './protected-paths.ts'
import { DECLARATIONS } from './run-argv.ts'
import { DOWNLOADED, type Interpreter } from './script-actions.ts'
import { fork, getVariable, markTested, type Scope, setVariable } from './shell-scope.ts'

/** Runs a node of the syntax tree and returns its output. */
export const runNode = (interpreter: Interpreter, node: SyntaxNode, scope: Scope, stdin: string): string => {
  const { runAll, runNode: run, spend, expander } = interpreter
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
      return runCommand(interpreter, node, scope, stdin)
    case 'Redirected':
      return run(node.command, scope, redirect(interpreter, node.redirects, scope) ?? stdin)
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
      return runChildren(interpreter, node, scope, stdin)
    case 'CommandExpansion':
    case 'ProcessSubstitution':
    case 'ArithmeticCommandExpansion':
      return node.script ? runAll(node.script.commands, fork(scope), stdin) : ''
    default:
      return runChildren(interpreter, node, scope, stdin)
  }
}

const runChildren = ({ runNode }: Interpreter, node: SyntaxNode, scope: Scope, stdin: string): string => {
  let output = ''
  forEachChild(node, child => {
    output += runNode(child, scope, stdin)
  })
  return output
}

const runCommand = (interpreter: Interpreter, node: Command, scope: Scope, stdin: string): string => {
  const assignments = node.prefix.filter(part => part.type === 'Assignment')
  if (!node.name) for (const part of assignments) assign(interpreter, part, scope)
  const input = redirect(interpreter, node.redirects, scope) ?? stdin
  if (!node.name) return ''
  const inner = assignments.length > 0 ? fork(scope) : scope
  for (const part of assignments) assign(interpreter, part, inner)
  const argv = [node.name, ...node.args].flatMap(word => argument(interpreter, word, scope))
  const name = argv[0] ?? ''
  if (name === '[' || name === 'test') markAllTested(node, scope)
  if (DECLARATIONS.has(name))
    for (const part of node.args) if (part.type === 'Assignment') assign(interpreter, part, scope)
  return interpreter.runArgv(argv, inner, input)
}

const assign = ({ expander }: Interpreter, part: Assignment, scope: Scope): void => {
  const { value } = part
  const words = value.type === 'Word' ? [value] : value.elements
  const text = words.map(word => expander.fields(word, scope).join(' ')).join(' ')
  const before = part.append ? (getVariable(scope, part.name) ?? '') : ''
  setVariable(scope, part.name, part.index ? UNKNOWN : before + text)
}

const argument = ({ expander }: Interpreter, arg: CommandArgument, scope: Scope): string[] =>
  arg.type === 'Word'
    ? expander.fields(arg, scope)
    : [`${arg.name}=${arg.value.type === 'Word' ? expander.fields(arg.value, scope).join(' ') : UNKNOWN}`]

/** Reports the files that redirections write to; returns the redirected input. */
const redirect = (
  { expander, report }: Interpreter,
  redirects: readonly Redirection[],
  scope: Scope,
): string | undefined => {
  let input: string | undefined
  for (const item of redirects) {
    if (item.type === 'HereDoc')
      input = item.body.parts ? expander.text(item.body.parts, scope) : item.body.text
    else if (item.type === 'HereString') input = item.target && expander.fields(item.target, scope).join(' ')
    else {
      const [path] = item.target ? expander.fields(item.target, scope) : []
      if (item.operator === '<') input = path?.includes(DOWNLOADED) ? DOWNLOADED : UNKNOWN
      else if (path !== undefined && !/^\d*-?$/.test(path))
        report({ kind: 'write', path, cwd: scope.cwd, append: item.operator.endsWith('>>') })
    }
  }
  return input
}

const markAllTested = (node: SyntaxNode, scope: Scope): void => {
  if (node.type === 'SimpleExpansion') markTested(scope, node.text.slice(1))
  if (node.type === 'ParameterExpansion') markTested(scope, node.parameter)
  forEachChild(node, child => markAllTested(child, scope))
}
