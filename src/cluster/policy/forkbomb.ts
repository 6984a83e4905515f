import {
  type Command,
  forEachChild,
  type ParsedScript,
  type Statement,
  type SyntaxNode,
  type While,
} from 'unbash'

/** Deeper than anybody nests what he means. */
const MAX_DEPTH = 128

/** The name of a function that multiplies itself without a condition, or of the loop that does. */
export const findForkBomb = (script: ParsedScript): string | undefined => {
  const bodies = new Map<string, SyntaxNode>()
  collectFunctions(script, bodies)
  const calls = new Map([...bodies].map(([name, body]) => [name, callsIn(body, name, bodies)]))
  for (const name of bodies.keys()) if (returnsForking(name, calls)) return name
  return selfSpawning(script)
}

interface Call {
  to: string
  forking: boolean
}

interface Place {
  background: boolean
  conditional: boolean
  crowded: boolean
}

const collectFunctions = (node: SyntaxNode, bodies: Map<string, SyntaxNode>, depth = 0): void => {
  if (node.type === 'Function') bodies.set(node.name.value, node.body)
  if (depth < MAX_DEPTH) forEachChild(node, child => collectFunctions(child, bodies, depth + 1))
}

/** The unconditional calls of a body to functions of the same script. */
const callsIn = (body: SyntaxNode, self: string, bodies: ReadonlyMap<string, SyntaxNode>): Call[] => {
  const calls: Call[] = []
  const called = (node: Command): string | undefined => {
    const text = node.name?.text ?? ''
    if (/FUNCNAME/.test(text)) return self
    const direct = [
      node.name?.value ?? '',
      ...node.args.flatMap(arg => (arg.type === 'Word' ? [arg.value] : [])),
    ]
    const name = ['eval', 'exec', 'command', 'time', 'nohup'].includes(direct[0]!) ? direct[1] : direct[0]
    return name !== undefined && bodies.has(name) ? name : undefined
  }
  const visit = (node: SyntaxNode, place: Place): void => {
    if (node.type === 'Function') return
    if (node.type === 'Command') {
      const name = called(node)
      if (name !== undefined && !place.conditional) {
        calls.push({ to: name, forking: place.background || place.crowded })
      }
    }
    if (node.type === 'Pipeline') {
      const own = node.commands.filter(
        child => child.type === 'Command' && called(child) !== undefined,
      ).length
      for (const child of node.commands) visit(child, { ...place, crowded: place.crowded || own >= 2 })
      return
    }
    if (node.type === 'CompoundList' || node.type === 'Script') {
      let guarded = place.conditional
      for (const statement of node.commands) {
        visit(statement, {
          ...place,
          conditional: guarded,
          background: place.background || statement.background === true,
        })
        guarded ||= mayLeave(statement)
      }
      return
    }
    forEachChild(node, child => visit(child, placeOf(node, child, place)))
  }
  visit(body, { background: false, conditional: false, crowded: false })
  return calls
}

const placeOf = (parent: SyntaxNode, child: SyntaxNode, place: Place): Place => {
  if (parent.type === 'CommandExpansion' || parent.type === 'Coproc') return { ...place, crowded: true }
  if (parent.type === 'If')
    return { ...place, conditional: place.conditional || (child !== parent.clause && !isTrue(parent.clause)) }
  if (parent.type === 'While') {
    return { ...place, conditional: place.conditional || (child !== parent.clause && !isEndless(parent)) }
  }
  if (parent.type === 'AndOr')
    return { ...place, conditional: place.conditional || child !== parent.commands[0] }
  if (['For', 'Case', 'CaseItem', 'Select', 'Elif'].includes(parent.type))
    return { ...place, conditional: true }
  return place
}

/** A `return` or `exit` under a condition guards what follows it. */
const mayLeave = (node: SyntaxNode): boolean => {
  let leaves = false
  const visit = (inner: SyntaxNode): void => {
    if (inner.type === 'Command' && /^(?:return|exit|break)$/.test(inner.name?.value ?? '')) leaves = true
    if (inner.type !== 'Function') forEachChild(inner, visit)
  }
  visit(node)
  return leaves
}

const isTrue = (list: { commands: readonly Statement[] }): boolean => {
  const command = list.commands.at(-1)?.command
  if (command?.type === 'ArithmeticCommand') return /^\s*[1-9]\d*\s*$/.test(command.body)
  if (command?.type !== 'Command') return false
  const name = command.name?.value ?? ''
  return name === 'true' || name === ':' || (name === '[' && command.args.length === 2)
}

const isEndless = ({ kind, clause }: While): boolean =>
  kind === 'while' ? isTrue(clause) : lastName(clause) === 'false'

const lastName = (list: { commands: readonly Statement[] }): string | undefined => {
  const command = list.commands.at(-1)?.command
  return command?.type === 'Command' ? command.name?.value : undefined
}

const returnsForking = (start: string, calls: ReadonlyMap<string, Call[]>): boolean => {
  const seen = new Set<string>()
  const walk = (name: string, forked: boolean): boolean =>
    (calls.get(name) ?? []).some(call => {
      const forking = forked || call.forking
      if (call.to === start) return forking
      const key = `${call.to} ${forking}`
      if (seen.has(key)) return false
      seen.add(key)
      return walk(call.to, forking)
    })
  return walk(start, false)
}

/** `$0|$0&`, and an endless loop whose every command goes to the background. */
const selfSpawning = (node: SyntaxNode, depth = 0): string | undefined => {
  const isSelf = (child: SyntaxNode): boolean =>
    child.type === 'Command' && /^["']?\$(?:0|\{0\})["']?$/.test(child.name?.text ?? '')
  if (node.type === 'Pipeline' && node.commands.filter(isSelf).length >= 2) return '$0'
  if (node.type === 'Statement' && node.background && isSelf(node.command)) return '$0'
  if (node.type === 'While' && isEndless(node) && allBackground(node.body.commands)) return node.kind
  if (node.type === 'ArithmeticFor' && !node.test && allBackground(node.body.commands)) return 'for'
  let found: string | undefined
  if (depth < MAX_DEPTH)
    forEachChild(node, child => {
      found ??= selfSpawning(child, depth + 1)
    })
  return found
}

export const allBackground = (statements: readonly Statement[]): boolean =>
  statements.length > 0 &&
  statements.every(
    ({ background, command }) =>
      background === true ||
      ((command.type === 'Subshell' || command.type === 'BraceGroup') &&
        allBackground(command.body.commands)),
  )
