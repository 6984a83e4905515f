import {
  type AndOr,
  type Assignment,
  type Command,
  type CommandNode,
  forEachChild,
  type If,
  type ParsedScript,
  type Statement,
  type SyntaxNode,
} from 'unbash'
import { dispatch } from './commands.ts'
import { createExpander, type Expander } from './expand.ts'
import { createFiles, type Files } from './files.ts'
import { assignedBy, type Guards, guardsOf, leaves } from './guards.ts'
import { product } from './product.ts'
import { readRedirects } from './redirects.ts'
import type { Refusal } from './rules.ts'
import type { Scope } from './scope.ts'
import { readCommand, readScript, type Script } from './script.ts'
import { processNumber, readable, UNKNOWN, withoutMarks } from './text.ts'

export interface Visitor {
  /** Called for every simple command with the words it may run with, and again with wrappers taken off. */
  command(argv: readonly string[], scope: Scope): Refusal | undefined
  enabled?(rule: string): boolean
}

export interface Interpreter {
  readonly expander: Expander
  readonly visitor: Visitor
  /** Output of the process substitutions met so far, by number. */
  readonly processes: string[]
  /** What the script itself wrote. */
  readonly files: Files
  /** How many temporary files were asked for. */
  temporaries: number
  /** Scripts that run when the shell ends. */
  readonly traps: string[]
  /** Functions and files being read, to leave recursion after a round. */
  readonly active: Map<SyntaxNode | string, number>
  /** One command line, its words resolved. */
  run(argv: readonly string[], scope: Scope, stdin: string): string
  runText(source: string, scope: Scope): string
  runBody(body: SyntaxNode, scope: Scope): string
  refuse(refusal: Refusal | undefined): void
  /** Gives text to whatever a path stands for: a file, or the script of `>(…)`. */
  deliver(path: string, text: string, scope: Scope, append?: boolean): void
  /** Counts one step of work and stops a script that was built to exhaust the reader. */
  tick(): void
}

export class Refused extends Error {
  readonly refusal: Refusal
  constructor(refusal: Refusal) {
    super(refusal.reason)
    this.refusal = refusal
  }
}

const READERS = new Set(['read', 'mapfile', 'readarray'])
/** On top of what a script needs that is read once from its first line to its last. */
const MAX_STEPS = 20_000
const MAX_TEXT = 16_000_000
const MAX_DEPTH = 12
const MAX_OUTPUT = 65_536
const tooComplex = (why: string): Refused =>
  new Refused({ rule: 'too-complex', reason: `it ${why} to be read before it is run` })

/**
 * Reads a script as the shell would, without running anything: what words become, what pipes carry as far as it
 * can be told, what inner shells get. Every simple command is shown to the visitor; a refusal ends the reading.
 */
export const interpret = (source: string, scope: Scope, visitor: Visitor): void => {
  let steps = MAX_STEPS + source.length
  let text = MAX_TEXT + 20 * source.length
  const consumers = new Map<number, ParsedScript>()
  const spend = (length: number): void => {
    text -= length
    if (text < 0) throw tooComplex('makes too much text')
  }
  const interpreter: Interpreter = {
    expander: createExpander({
      substitute: (script, inner, kind) => {
        const output = script ? runScript(script, inner.fork({ depth: inner.depth + 1 })) : UNKNOWN
        if (kind === 'command') return output
        const number = interpreter.processes.push(output) - 1
        if (kind === 'consumer' && script) consumers.set(number, script)
        return String(number)
      },
      enter: (expression, inner) => nested(expression, inner),
      spend,
    }),
    visitor,
    processes: [],
    files: createFiles(),
    temporaries: 0,
    traps: [],
    active: new Map(),
    run: (argv, inner, stdin) => dispatch(interpreter, argv, inner, stdin),
    runText: (text, inner) => {
      spend(text.length)
      return runRead(readScript(text), inner)
    },
    runBody: (body, inner) => runNode(body, inner),
    refuse: refusal => {
      if (!refusal || visitor.enabled?.(refusal.rule) === false) return
      throw new Refused({ ...refusal, reason: readable(refusal.reason) })
    },
    deliver: (path, output, inner, append) => {
      const consumer = consumers.get(processNumber(path) ?? -1)
      if (consumer) runScript(consumer, inner.fork({ depth: inner.depth + 1, stdin: output }))
      else if (!path.startsWith('/dev/')) interpreter.files.write(path, output, inner, append)
    },
    tick: () => {
      if (--steps < 0) throw tooComplex('takes too many steps')
    },
  }
  const { refuse, tick, expander } = interpreter

  const runScript = (script: ParsedScript, inner: Scope): string => {
    if (inner.depth > MAX_DEPTH) throw tooComplex('is nested too deeply')
    return runStatements(script.commands, inner)
  }

  const runRead = ({ tree, bomb }: Script, inner: Scope): string => {
    if (bomb) refuse({ rule: 'fork-bomb', reason: `"${bomb}" starts copies of itself without end` })
    return runScript(tree, inner)
  }

  const runStatements = (statements: readonly Statement[], inner: Scope): string => {
    let output = ''
    for (const statement of statements) {
      output += runNode(statement.command, statement.background ? inner.fork() : inner)
      if (output.length > MAX_OUTPUT) output = output.slice(0, MAX_OUTPUT)
    }
    return output
  }

  /** Runs what may be skipped. What a test has shown before it holds inside; what is shown inside stays inside. */
  const branch = (inner: Scope, shown: readonly string[], run: () => string): string => {
    const { conditional, sure } = inner
    inner.conditional = true
    inner.sure = new Set([...sure, ...shown])
    try {
      return run()
    } finally {
      // What was assigned inside may be empty from now on.
      inner.sure = new Set([...sure].filter(name => inner.sure.has(name)))
      inner.conditional = conditional
    }
  }

  const learn = (inner: Scope, names: readonly string[]): void => {
    for (const name of names) inner.sure.add(name)
  }

  /** Past a branch for the empty case, which ends the script or gives the variable a value, it is not empty. */
  const learnPast = (emptyCase: SyntaxNode | undefined, inner: Scope, names: readonly string[]): void => {
    const given = assignedBy(emptyCase)
    const isFilled = (name: string): boolean =>
      given.includes(name) && inner.lookup(name).some(value => value !== '')
    learn(inner, leaves(emptyCase) ? names : names.filter(isFilled))
  }

  const runAndOr = (node: AndOr, inner: Scope): string => {
    let shown: readonly string[] = []
    let output = ''
    for (const [index, command] of node.commands.entries()) {
      const before = node.commands[index - 1]
      if (before === undefined) {
        output += runNode(command, inner)
        continue
      }
      const guards = guardsOf(before)
      const and = node.operators[index - 1] === '&&'
      shown = and ? [...shown, ...guards.whenTrue] : index === 1 ? guards.whenFalse : []
      output += branch(inner, shown, () => {
        const printed = runNode(command, inner)
        shown = shown.filter(name => inner.sure.has(name))
        return printed
      })
      // `[ -n "$D" ] || exit` shows it to all that follows.
      if (index === 1 && node.commands.length === 2)
        learnPast(command, inner, and ? guards.whenFalse : guards.whenTrue)
    }
    return output
  }

  const runIf = (node: If, inner: Scope): string => {
    const guards = guardsOf(node.clause)
    let output = runNode(node.clause, inner)
    output += branch(inner, guards.whenTrue, () => runNode(node.then, inner))
    let otherwise: Guards['whenFalse'] = guards.whenFalse
    for (const elif of node.elif) {
      const own = guardsOf(elif.clause)
      output += branch(inner, otherwise, () => runNode(elif.clause, inner))
      output += branch(inner, [...otherwise, ...own.whenTrue], () => runNode(elif.then, inner))
      otherwise = [...otherwise, ...own.whenFalse]
    }
    const last = node.else
    if (last) output += branch(inner, otherwise, () => runNode(last, inner))
    if (node.elif.length === 0) {
      learnPast(node.then, inner, guards.whenFalse)
      if (last) learnPast(last, inner, guards.whenTrue)
    }
    return output
  }

  const runNode = (node: SyntaxNode, inner: Scope): string => {
    tick()
    switch (node.type) {
      case 'Script':
      case 'CompoundList':
        return runStatements(node.commands, inner)
      case 'Statement':
        return runNode(node.command, inner)
      case 'AndOr':
        return runAndOr(node, inner)
      case 'Pipeline':
        return runPipeline(node.commands, inner)
      case 'Command':
        return runCommand(node, inner)
      case 'Redirected': {
        const redirects = readRedirects(interpreter, node.redirects, inner)
        const before = inner.stdin
        // A compound command keeps its scope: what it assigns stays.
        inner.stdin = redirects.input ?? before
        const output = runNode(node.command, inner)
        inner.stdin = before
        return redirects.pass(output)
      }
      case 'Subshell':
        return runNode(node.body, inner.fork())
      case 'BraceGroup':
      case 'Coproc':
        return runNode(node.body, inner)
      case 'Function':
        inner.functions.set(node.name.value, node.body)
        return ''
      case 'If':
        return runIf(node, inner)
      case 'While': {
        const { whenTrue, whenFalse } = guardsOf(node.clause)
        const shown = node.kind === 'while' ? whenTrue : whenFalse
        return runNode(node.clause, inner) + loop(node.body, inner, { shown })
      }
      case 'For':
      case 'Select': {
        const words = node.wordlist?.flatMap(word => expander.fields(word, inner).flat()) ?? inner.args
        inner.assign(node.name.value, words.length > 0 ? words.slice(0, 64) : [''])
        return loop(node.body, inner, { values: words.slice(0, 64), name: node.name.value })
      }
      case 'Case':
        nested(node.word, inner)
        return branch(inner, [], () => node.items.map(item => runNode(item.body, inner)).join(''))
      case 'ArithmeticFor':
        return loop(node.body, inner)
      default:
        nested(node, inner)
        return ''
    }
  }

  /** Twice, so that what the first round assigns is seen by the second. */
  const loop = (
    body: SyntaxNode,
    inner: Scope,
    round: { shown?: readonly string[]; values?: readonly string[]; name?: string } = {},
  ): string =>
    branch(inner, round.shown ?? [], () => {
      const { values, name } = round
      if (!values || !name || values.length > 8) return runNode(body, inner) + runNode(body, inner)
      let output = ''
      for (const value of values) {
        inner.conditional = false
        inner.assign(name, [value])
        inner.conditional = true
        output += runNode(body, inner)
      }
      return output
    })

  const runPipeline = (commands: readonly CommandNode[], inner: Scope): string => {
    let flow = inner.stdin
    for (const command of commands) flow = runNode(command, inner.fork({ stdin: flow }))
    return flow
  }

  /** Command substitutions hidden in tests and arithmetic. */
  const nested = (node: SyntaxNode, inner: Scope): void => {
    tick()
    if (
      node.type === 'CommandExpansion' ||
      node.type === 'ProcessSubstitution' ||
      node.type === 'ArithmeticCommandExpansion'
    ) {
      if (node.script) runScript(node.script, inner.fork({ depth: inner.depth + 1 }))
      return
    }
    forEachChild(node, child => nested(child, inner))
  }

  const assign = (assignment: Assignment, inner: Scope): void => {
    if (assignment.index) expander.texts(assignment.index, inner)
    if (assignment.value.type === 'ArrayValue') {
      const elements = assignment.value.elements.flatMap(element => expander.fields(element, inner)[0] ?? [])
      if (assignment.append) inner.append(assignment.name, elements)
      else inner.assignArray(assignment.name, elements)
      return
    }
    const values = expander.texts(assignment.value, inner)
    if (assignment.append) inner.append(assignment.name, values)
    else inner.assign(assignment.name, values)
  }

  const runCommand = (node: Command, inner: Scope): string => {
    const redirects = readRedirects(interpreter, node.redirects, inner)
    const assignments = node.prefix.filter(item => item.type === 'Assignment')
    if (!node.name) {
      for (const assignment of assignments) assign(assignment, inner)
      return redirects.pass('')
    }
    const choices = [node.name, ...node.args].map(word => {
      if (word.type === 'Word') return expander.fields(word, inner)
      assign(word, inner)
      const value = word.value.type === 'Word' ? expander.texts(word.value, inner)[0] : undefined
      return [[`${word.name}=${value ?? UNKNOWN}`]]
    })
    const argvs = product(choices)
    // `IFS= read x` sets x here, whatever it borrows.
    const stays = assignments.length === 0 || READERS.has(node.name.value)
    const own = stays ? inner : inner.fork()
    if (!stays) for (const assignment of assignments) assign(assignment, own)
    const stdin = redirects.input ?? inner.stdin
    const before = own.stdin
    own.stdin = stdin
    const output = argvs.map(argv => interpreter.run(argv, own, stdin)).join('')
    own.stdin = before
    return redirects.pass(output)
  }

  try {
    runRead(readCommand(withoutMarks(source)), scope)
    for (const trap of interpreter.traps.splice(0)) interpreter.runText(trap, scope)
  } catch (error) {
    if (error instanceof RangeError) throw tooComplex('is nested too deeply')
    throw error
  }
}
