import type { Command, SyntaxNode, TestExpression, Word } from 'unbash'

/** Which variables a condition shows not to be empty. */
export interface Guards {
  whenTrue: readonly string[]
  whenFalse: readonly string[]
}

const NOTHING: Guards = { whenTrue: [], whenFalse: [] }

/** `[ -n "$D" ]`, `[[ $D ]]`, `test -d "$D"`, `[ -z "$D" ]`, and what `!`, `&&` and `||` make of them. */
export const guardsOf = (node: SyntaxNode | undefined): Guards => {
  switch (node?.type) {
    case 'Statement':
      return guardsOf(node.command)
    case 'CompoundList':
      return guardsOf(node.commands.at(-1))
    case 'BraceGroup':
    case 'Subshell':
      return guardsOf(node.body)
    case 'Pipeline': {
      if (node.commands.length !== 1) return NOTHING
      const guards = guardsOf(node.commands[0])
      const negated = node.prefixes.filter(prefix => prefix.type === 'Negation').length % 2 === 1
      return negated ? swap(guards) : guards
    }
    case 'AndOr':
      return join(
        node.operators.every(operator => operator === '&&')
          ? '&&'
          : node.operators.every(operator => operator === '||')
            ? '||'
            : undefined,
        node.commands.map(guardsOf),
      )
    case 'Command':
      return ofCommand(node)
    case 'TestCommand':
      return ofExpression(node.expression)
    default:
      return NOTHING
  }
}

/** Whether nothing after this is reached: `exit`, `{ echo no; return 1; }`. */
export const leaves = (node: SyntaxNode | undefined): boolean => {
  switch (node?.type) {
    case 'Statement':
      return !node.background && leaves(node.command)
    case 'CompoundList':
      return leaves(node.commands.at(-1))
    case 'BraceGroup':
      return leaves(node.body)
    case 'Pipeline':
      return node.commands.length === 1 && leaves(node.commands[0])
    case 'Command':
      return ['exit', 'return', 'break', 'continue'].includes(node.name?.value ?? '')
    default:
      return false
  }
}

/** Variables that a branch gives a value for sure: `[ -z "$D" ] && D=build`. */
export const assignedBy = (node: SyntaxNode | undefined): string[] => {
  switch (node?.type) {
    case 'Statement':
      return assignedBy(node.command)
    case 'CompoundList':
      return node.commands.flatMap(assignedBy)
    case 'BraceGroup':
      return assignedBy(node.body)
    case 'Command':
      return node.name ? [] : node.prefix.flatMap(item => (item.type === 'Assignment' ? [item.name] : []))
    default:
      return []
  }
}

const swap = ({ whenTrue, whenFalse }: Guards): Guards => ({ whenTrue: whenFalse, whenFalse: whenTrue })

const join = (operator: '&&' | '||' | undefined, parts: readonly Guards[]): Guards => ({
  whenTrue: operator === '&&' ? parts.flatMap(part => part.whenTrue) : [],
  whenFalse: operator === '||' ? parts.flatMap(part => part.whenFalse) : [],
})

const NEEDS_TEXT = /^-[nabcdefghkprstuwxGLNOS]$/

const ofCommand = (command: Command): Guards => {
  const name = command.name?.value
  if (name !== '[' && name !== 'test') return NOTHING
  const words = command.args.flatMap(arg => (arg.type === 'Word' ? [arg] : []))
  if (words.length !== command.args.length) return NOTHING
  return ofWords(name === '[' ? words.slice(0, -1) : words)
}

/** Without quotes an empty variable vanishes, and `[ -n ]` is true. */
const ofWords = (words: readonly Word[]): Guards => {
  const values = words.map(word => word.value)
  if (values[0] === '!') return swap(ofWords(words.slice(1)))
  const and = words.findIndex((word, index) => index > 0 && word.text === '-a')
  if (and > 0) return join('&&', [ofWords(words.slice(0, and)), ofWords(words.slice(and + 1))])
  const [first, second, third] = words
  if (words.length === 1) return { whenTrue: quotedName(first!), whenFalse: [] }
  if (words.length === 2 && values[0] === '-z') return { whenTrue: [], whenFalse: anyName(second!) }
  if (words.length === 2 && NEEDS_TEXT.test(values[0]!))
    return { whenTrue: quotedName(second!), whenFalse: [] }
  if (words.length === 3) return ofComparison(first!, values[1]!, third!, quotedName)
  return NOTHING
}

const ofExpression = (expression: TestExpression): Guards => {
  switch (expression.type) {
    case 'TestGroup':
      return ofExpression(expression.expression)
    case 'TestNot':
      return expression.negations.length % 2 === 1
        ? swap(ofExpression(expression.operand))
        : ofExpression(expression.operand)
    case 'TestLogical':
      return join(expression.operator, expression.operands.map(ofExpression))
    case 'TestUnary': {
      const names = anyName(expression.operand)
      if (expression.operator === '-z') return { whenTrue: [], whenFalse: names }
      return NEEDS_TEXT.test(expression.operator) || expression.operator === ''
        ? { whenTrue: names, whenFalse: [] }
        : NOTHING
    }
    case 'TestBinary':
      return ofComparison(expression.left, expression.operator, expression.right, anyName)
  }
}

/** `"$D" != ""`, `"$D" = x`, and the old `"x$D" != x`. */
const ofComparison = (
  left: Word,
  operator: string,
  right: Word,
  nameOf: (word: Word) => string[],
): Guards => {
  const equal = operator === '=' || operator === '=='
  if (!equal && operator !== '!=') return NOTHING
  const prefix = /^"?([A-Za-z_.]+)\$\{?([A-Za-z_]\w*)\}?"?$/.exec(left.text)
  const names = prefix && prefix[1] === right.value ? [prefix[2]!] : nameOf(left)
  const toNothing = right.value === '' || (prefix !== null && prefix[1] === right.value)
  if (toNothing) return equal ? { whenTrue: [], whenFalse: names } : { whenTrue: names, whenFalse: [] }
  return equal && right.parts === undefined ? { whenTrue: names, whenFalse: [] } : NOTHING
}

const NAME = /^\$(?:\{([A-Za-z_]\w*|[1-9])(?::?-)?\}|([A-Za-z_]\w*|[1-9]))$/

const anyName = (word: Word): string[] => {
  const match = NAME.exec(word.text.replace(/^"(.*)"$/s, '$1'))
  return match ? [(match[1] ?? match[2])!] : []
}

const quotedName = (word: Word): string[] => (word.text.startsWith('"') ? anyName(word) : [])
