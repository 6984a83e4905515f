import {
  type Assignment,
  type Command,
  type CommandNode,
  forEachChild,
  type ParsedScript,
  parse,
  type Redirection,
  type Statement,
  type SyntaxNode,
} from 'unbash'
import { dispatch } from './commands.ts'
import { createExpander, type Expander } from './expand.ts'
import { findForkBomb } from './forkbomb.ts'
import { judgeWrite, type Refusal } from './rules.ts'
import type { Scope } from './scope.ts'
import { fileKey, processOutput, readable, UNKNOWN, withoutMarks } from './text.ts'

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
  /** What the script itself wrote into files, by path: it may be run as a script later. */
  readonly files: Map<string, string>
  /** Scripts that run when the shell ends. */
  readonly traps: string[]
  /** Functions being read, to leave recursion after a round. */
  readonly active: Map<SyntaxNode, number>
  runText(source: string, scope: Scope): string
  runBody(body: SyntaxNode, scope: Scope): string
  refuse(refusal: Refusal | undefined): void
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

const MAX_STEPS = 20_000
const MAX_DEPTH = 12
const MAX_OUTPUT = 65_536
const TOO_COMPLEX: Refusal = {
  rule: 'too-complex',
  reason: 'it is nested too deeply to be read before it is run',
}

/**
 * Reads a script as the shell would, without running anything: what words become, what pipes carry as far as it
 * can be told, what inner shells get. Every simple command is shown to the visitor; a refusal ends the reading.
 */
export const interpret = (source: string, scope: Scope, visitor: Visitor): void => {
  let steps = 0
  const interpreter: Interpreter = {
    expander: createExpander(
      (script, inner, kind) => {
        const output = script ? runScript(script, inner.fork({ depth: inner.depth + 1 })) : UNKNOWN
        if (kind === 'command') return output
        interpreter.processes.push(output)
        return String(interpreter.processes.length - 1)
      },
      (expression, inner) => nested(expression, inner),
    ),
    visitor,
    processes: [],
    files: new Map(),
    traps: [],
    active: new Map(),
    runText: (text, inner) => {
      const script = parse(text)
      // `:(){:|:&};:` is a mistake to bash and a bomb to zsh.
      if (script.errors) refuseForkBomb(parse(text.replace(/\(\)\s*\{/g, '() { ')))
      return runScript(script, inner)
    },
    runBody: (body, inner) => runNode(body, inner),
    refuse: refusal => {
      if (!refusal || visitor.enabled?.(refusal.rule) === false) return
      throw new Refused({ ...refusal, reason: readable(refusal.reason) })
    },
    tick: () => {
      if (++steps > MAX_STEPS) throw new Refused(TOO_COMPLEX)
    },
  }
  const { refuse, tick, expander } = interpreter

  const runScript = (script: ParsedScript, inner: Scope): string => {
    if (inner.depth > MAX_DEPTH) throw new Refused(TOO_COMPLEX)
    refuseForkBomb(script)
    return runStatements(script.commands, inner)
  }

  const refuseForkBomb = (script: ParsedScript): void => {
    const bomb = findForkBomb(script)
    if (bomb) refuse({ rule: 'fork-bomb', reason: `"${bomb}" starts copies of itself without end` })
  }

  const runStatements = (statements: readonly Statement[], inner: Scope): string => {
    let output = ''
    for (const statement of statements) {
      output += runNode(statement.command, statement.background ? inner.fork() : inner)
      if (output.length > MAX_OUTPUT) output = output.slice(0, MAX_OUTPUT)
    }
    return output
  }

  const branch = (inner: Scope, run: () => string): string => {
    const before = inner.conditional
    inner.conditional = true
    try {
      return run()
    } finally {
      inner.conditional = before
    }
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
        return node.commands
          .map((command, index) =>
            index === 0 ? runNode(command, inner) : branch(inner, () => runNode(command, inner)),
          )
          .join('')
      case 'Pipeline':
        return runPipeline(node.commands, inner)
      case 'Command':
        return runCommand(node, inner)
      case 'Redirected':
        return runNode(node.command, withRedirects(node.redirects, inner))
      case 'Subshell':
        return runNode(node.body, inner.fork())
      case 'BraceGroup':
      case 'Coproc':
        return runNode(node.body, inner)
      case 'Function':
        inner.functions.set(node.name.value, node.body)
        return ''
      case 'If':
        return (
          runNode(node.clause, inner) +
          branch(inner, () =>
            [
              node.then,
              ...node.elif.flatMap(elif => [elif.clause, elif.then]),
              ...(node.else ? [node.else] : []),
            ]
              .map(list => runNode(list, inner))
              .join(''),
          )
        )
      case 'While':
        return runNode(node.clause, inner) + loop(node.body, inner)
      case 'For':
      case 'Select': {
        const words = node.wordlist?.flatMap(word => expander.fields(word, inner).flat()) ?? inner.args
        inner.assign(node.name.value, words.length > 0 ? words.slice(0, 64) : [''])
        return loop(node.body, inner, words.slice(0, 64), node.name.value)
      }
      case 'Case':
        nested(node.word, inner)
        return branch(inner, () => node.items.map(item => runNode(item.body, inner)).join(''))
      case 'ArithmeticFor':
        return loop(node.body, inner)
      default:
        nested(node, inner)
        return ''
    }
  }

  /** Twice, so that what the first round assigns is seen by the second. */
  const loop = (body: SyntaxNode, inner: Scope, values?: readonly string[], name?: string): string =>
    branch(inner, () => {
      if (!values || !name || values.length > 8) return runNode(body, inner) + runNode(body, inner)
      let output = ''
      for (const value of values) {
        inner.unset(name)
        inner.assign(name, [value])
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

  const withRedirects = (redirects: readonly Redirection[], inner: Scope): Scope => {
    const input = redirects
      .map(redirect => readRedirect(redirect, inner))
      .findLast(text => text !== undefined)
    // A compound command keeps its scope: what it assigns stays.
    if (input !== undefined) inner.stdin = input
    return inner
  }

  const readRedirect = (redirect: Redirection, inner: Scope): string | undefined => {
    if (redirect.type === 'HereDoc') {
      const { body } = redirect
      return body.parts ? expander.partTexts(body.parts, inner)[0] : body.text
    }
    if (!redirect.target) return undefined
    const texts = expander.texts(redirect.target, inner)
    if (redirect.type === 'HereString') return `${texts[0] ?? ''}\n`
    if (redirect.operator !== '<' && redirect.operator !== '<&') {
      for (const text of texts) refuse(judgeWrite(text, inner.cwds))
      return undefined
    }
    return processOutput(texts[0] ?? '', interpreter.processes) ?? UNKNOWN
  }

  const writtenFiles = (redirect: Redirection, inner: Scope): { path: string; append: boolean }[] => {
    if (redirect.type !== 'Redirect' || !redirect.target || !/^&?>[>|]?$/.test(redirect.operator)) return []
    const { descriptor } = redirect
    if (descriptor && !(descriptor.type === 'FileDescriptor' && descriptor.value === 1)) return []
    const append = redirect.operator.endsWith('>>')
    const paths = expander.texts(redirect.target, inner).filter(text => !text.startsWith('/dev/'))
    return paths.map(text => ({ path: fileKey(text), append }))
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
    const input = node.redirects
      .map(redirect => readRedirect(redirect, inner))
      .findLast(text => text !== undefined)
    const assignments = node.prefix.filter(item => item.type === 'Assignment')
    if (!node.name) {
      for (const assignment of assignments) assign(assignment, inner)
      return ''
    }
    const choices = [node.name, ...node.args].map(word => {
      if (word.type === 'Word') return expander.fields(word, inner)
      assign(word, inner)
      const value = word.value.type === 'Word' ? expander.texts(word.value, inner)[0] : undefined
      return [[`${word.name}=${value ?? UNKNOWN}`]]
    })
    const argvs = product(choices)
    const own = assignments.length > 0 ? inner.fork() : inner
    for (const assignment of assignments) assign(assignment, own)
    const stdin = input ?? inner.stdin
    const output = argvs.map(argv => dispatch(interpreter, argv, own, stdin)).join('')
    const files = node.redirects.flatMap(redirect => writtenFiles(redirect, inner))
    for (const { path, append } of files)
      interpreter.files.set(path, `${append ? (interpreter.files.get(path) ?? '') : ''}${output}`)
    return files.length > 0 ? '' : output
  }

  try {
    interpreter.runText(withoutMarks(source), scope)
    for (const trap of interpreter.traps.splice(0)) interpreter.runText(trap, scope)
  } catch (error) {
    if (error instanceof RangeError) throw new Refused(TOO_COMPLEX)
    throw error
  }
}

const MAX_ARGVS = 16

/** Every command line the choices allow, up to a bound; past it, all the remaining choices in one line. */
const product = (choices: readonly string[][][]): string[][] => {
  let argvs: string[][] = [[]]
  for (const options of choices) {
    if (options.length > 1 && argvs.length * options.length <= MAX_ARGVS) {
      argvs = argvs.flatMap(argv => options.map(fields => [...argv, ...fields]))
      continue
    }
    for (const argv of argvs) for (const fields of options) for (const field of fields) argv.push(field)
  }
  return argvs
}
