import { type CommandNode, forEachChild, type ParsedScript, type Statement, type SyntaxNode } from 'unbash'
import { branch, runAndOr, runIf, runLoop } from './branches.ts'
import { guardsOf } from './guards.ts'
import { type Interpreter, tooComplex } from './interpreter.ts'
import { readRedirects } from './redirects.ts'
import type { Scope } from './scope.ts'
import type { Script } from './script.ts'
import { runCommand } from './simple-command.ts'

const MAX_DEPTH = 12
const MAX_OUTPUT = 65_536

/** Goes through the tree of a script in the order in which a shell would, and gathers what it prints. */
export interface Walker {
  read(script: Script, scope: Scope): string
  script(script: ParsedScript, scope: Scope): string
  node(node: SyntaxNode, scope: Scope): string
  /** Only the command substitutions, which hide in tests and arithmetic. */
  nested(node: SyntaxNode, scope: Scope): void
}

export const createWalker = (interpreter: Interpreter): Walker => {
  const read = ({ tree, bomb }: Script, scope: Scope): string => {
    if (bomb)
      interpreter.refuse({ rule: 'fork-bomb', reason: `"${bomb}" starts copies of itself without end` })
    return runScript(tree, scope)
  }

  const runScript = (script: ParsedScript, scope: Scope): string => {
    if (scope.depth > MAX_DEPTH) throw tooComplex('is nested too deeply')
    return runStatements(script.commands, scope)
  }

  const runStatements = (statements: readonly Statement[], scope: Scope): string => {
    let output = ''
    for (const statement of statements) {
      output += runNode(statement.command, statement.background ? scope.fork() : scope)
      if (output.length > MAX_OUTPUT) output = output.slice(0, MAX_OUTPUT)
    }
    return output
  }

  const runNode = (node: SyntaxNode, scope: Scope): string => {
    interpreter.tick()
    switch (node.type) {
      case 'Script':
      case 'CompoundList':
        return runStatements(node.commands, scope)
      case 'Statement':
        return runNode(node.command, scope)
      case 'AndOr':
        return runAndOr(node, scope, runNode)
      case 'Pipeline':
        return runPipeline(node.commands, scope)
      case 'Command':
        return runCommand(interpreter, node, scope)
      case 'Redirected': {
        const redirects = readRedirects(interpreter, node.redirects, scope)
        const before = scope.stdin
        // A compound command keeps its scope: what it assigns stays.
        scope.stdin = redirects.input ?? before
        const output = runNode(node.command, scope)
        scope.stdin = before
        return redirects.pass(output)
      }
      case 'Subshell':
        return runNode(node.body, scope.fork())
      case 'BraceGroup':
      case 'Coproc':
        return runNode(node.body, scope)
      case 'Function':
        scope.functions.set(node.name.value, node.body)
        return ''
      case 'If':
        return runIf(node, scope, runNode)
      case 'While': {
        const { whenTrue, whenFalse } = guardsOf(node.clause)
        const shown = node.kind === 'while' ? whenTrue : whenFalse
        return (
          runNode(node.clause, scope) +
          runLoop(node.body, scope, runNode, { once: interpreter.hurried, shown })
        )
      }
      case 'For':
      case 'Select': {
        const words =
          node.wordlist?.flatMap(word => interpreter.expander.fields(word, scope).flat()) ?? scope.args
        const name = node.name.value
        scope.assign(name, words.length > 0 ? words.slice(0, 64) : [''])
        return runLoop(node.body, scope, runNode, {
          once: interpreter.hurried,
          values: words.slice(0, 64),
          name,
        })
      }
      case 'Case':
        nested(node.word, scope)
        return branch(scope, [], () => node.items.map(item => runNode(item.body, scope)).join(''))
      case 'ArithmeticFor':
        return runLoop(node.body, scope, runNode, { once: interpreter.hurried })
      default:
        nested(node, scope)
        return ''
    }
  }

  const runPipeline = (commands: readonly CommandNode[], scope: Scope): string => {
    let flow = scope.stdin
    for (const command of commands) flow = runNode(command, scope.fork({ stdin: flow }))
    return flow
  }

  const nested = (node: SyntaxNode, scope: Scope): void => {
    interpreter.tick()
    if (
      node.type === 'CommandExpansion' ||
      node.type === 'ProcessSubstitution' ||
      node.type === 'ArithmeticCommandExpansion'
    ) {
      if (node.script) runScript(node.script, scope.fork({ depth: scope.depth + 1 }))
      return
    }
    forEachChild(node, child => nested(child, scope))
  }

  return { read, script: runScript, node: runNode, nested }
}
