import type { AndOr, If, SyntaxNode } from 'unbash'
import { assignedBy, type Guards, guardsOf, leaves } from './guards.ts'
import { Layer } from './layer.ts'
import type { Scope } from './scope.ts'

const MAX_ROUNDS = 8

/** Reads a node for what it prints. */
export type RunNode = (node: SyntaxNode, scope: Scope) => string

/** Runs what may be skipped. What a test has shown before it holds inside; what is shown inside stays inside. */
export const branch = (scope: Scope, shown: readonly string[], run: () => string): string => {
  const { conditional, sure } = scope
  const inside = new Layer(sure)
  scope.conditional = true
  scope.sure = inside
  learn(scope, shown)
  try {
    return run()
  } finally {
    // What was assigned inside may be empty from now on.
    for (const name of inside.deleted()) sure.delete(name)
    scope.sure = sure
    scope.conditional = conditional
  }
}

export const runAndOr = (node: AndOr, scope: Scope, run: RunNode): string => {
  let shown: readonly string[] = []
  let output = ''
  for (const [index, command] of node.commands.entries()) {
    const before = node.commands[index - 1]
    if (before === undefined) {
      output += run(command, scope)
      continue
    }
    const guards = guardsOf(before)
    const and = node.operators[index - 1] === '&&'
    shown = and ? [...shown, ...guards.whenTrue] : index === 1 ? guards.whenFalse : []
    output += branch(scope, shown, () => {
      const printed = run(command, scope)
      shown = shown.filter(name => scope.sure.get(name))
      return printed
    })
    // `[ -n "$D" ] || exit` shows it to all that follows.
    if (index === 1 && node.commands.length === 2)
      learnPast(command, scope, and ? guards.whenFalse : guards.whenTrue)
  }
  return output
}

export const runIf = (node: If, scope: Scope, run: RunNode): string => {
  const guards = guardsOf(node.clause)
  let output = run(node.clause, scope)
  output += branch(scope, guards.whenTrue, () => run(node.then, scope))
  let otherwise: Guards['whenFalse'] = guards.whenFalse
  for (const elif of node.elif) {
    const own = guardsOf(elif.clause)
    output += branch(scope, otherwise, () => run(elif.clause, scope))
    output += branch(scope, [...otherwise, ...own.whenTrue], () => run(elif.then, scope))
    otherwise = [...otherwise, ...own.whenFalse]
  }
  const last = node.else
  if (last) output += branch(scope, otherwise, () => run(last, scope))
  if (node.elif.length === 0) {
    learnPast(node.then, scope, guards.whenFalse)
    if (last) learnPast(last, scope, guards.whenTrue)
  }
  return output
}

interface Round {
  once: boolean
  shown?: readonly string[]
  values?: readonly string[]
  name?: string
}

/**
 * Twice, so that what the first round assigns is seen by the second; or once for each of a few values, or some of
 * them. A loop within a loop comes by again anyhow.
 */
export const runLoop = (body: SyntaxNode, scope: Scope, run: RunNode, round: Round): string =>
  branch(scope, round.shown ?? [], () => {
    const { values, name } = round
    const { looping } = scope
    if (looping || round.once) return run(body, scope)
    scope.looping = true
    try {
      if (!values || !name) return joined([run(body, scope), run(body, scope)])
      const together = Math.ceil(values.length / MAX_ROUNDS)
      const outputs: string[] = []
      for (let at = 0; at < values.length; at += together) {
        scope.conditional = false
        scope.assign(name, values.slice(at, at + together))
        scope.conditional = true
        outputs.push(run(body, scope))
      }
      return joined(outputs)
    } finally {
      scope.looping = looping
    }
  })

/** What may have been printed in one way or another, each once. */
export const joined = (outputs: readonly string[]): string => [...new Set(outputs)].join('')

const learn = (scope: Scope, names: readonly string[]): void => {
  for (const name of names) scope.sure.set(name, true)
}

/** Past a branch for the empty case, which ends the script or gives the variable a value, it is not empty. */
const learnPast = (emptyCase: SyntaxNode | undefined, scope: Scope, names: readonly string[]): void => {
  const given = assignedBy(emptyCase)
  const isFilled = (name: string): boolean =>
    given.includes(name) && scope.lookup(name).some(value => value !== '')
  learn(scope, leaves(emptyCase) ? names : names.filter(isFilled))
}
