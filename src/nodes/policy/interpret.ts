import { createExpander } from './expand-words.ts'
import { parseScript } from './parse-script.ts'
import { UNKNOWN } from './protected-paths.ts'
import { runArgv } from './run-argv.ts'
import { runNode } from './run-node.ts'
import { type Action, type Interpreter, MAX_DEPTH } from './script-actions.ts'
import { fork, type Scope } from './shell-scope.ts'

/** Thrown when interpreting a script takes too many steps. */
export class TooComplex extends Error {}

/** A limit on steps, not on time: the verdict must not depend on the load of the computer. */
const MAX_STEPS = 200_000

/** Follows a script in the order in which a shell runs it and reports each action. Runs nothing. */
export const interpretScript = (source: string, scope: Scope, report: (action: Action) => void): void => {
  let steps = 0
  const interpreter: Interpreter = {
    report,
    spend: count => {
      steps += count
      if (steps > MAX_STEPS) throw new TooComplex('it takes too many steps to read')
    },
    expander: createExpander((script, at) => interpreter.runAll(script.commands, fork(at))),
    runScript: (text, scope) => {
      report({ kind: 'script', text, root: scope.root })
      if (scope.depth >= MAX_DEPTH) throw new TooComplex('it is nested too deeply')
      interpreter.spend(1 + text.length / 64)
      return interpreter.runAll(parseScript(text).commands, fork(scope, { depth: scope.depth + 1 }))
    },
    runAll: (nodes, scope, stdin = UNKNOWN) =>
      nodes.map(node => interpreter.runNode(node, scope, stdin)).join(''),
    runNode: (node, scope, stdin) => runNode(interpreter, node, scope, stdin),
    runArgv: (argv, scope, stdin) => runArgv(interpreter, argv, scope, stdin),
  }
  interpreter.runScript(source, scope)
}
