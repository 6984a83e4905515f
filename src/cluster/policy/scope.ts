import type { Function as FunctionNode } from 'unbash'
import { Layer } from './layer.ts'
import { memo } from './memo.ts'
import { FIELD, HOME, UNKNOWN } from './text.ts'

const MAX_VALUES = 8
const MAX_REFERENCES = 8
/** Text that grows beyond this, round by round, is not followed. */
const MAX_GROWN = 4096

/** Those of a command, which has none. */
export const NO_ARGUMENTS: string[] = []

export type ScopeChanges = Partial<
  Pick<Scope, 'root' | 'stdin' | 'conditional' | 'depth' | 'args' | 'self' | 'nounset'>
>

/**
 * What a script may know at one point: every value its variables may have, where it is, and who it is. A class,
 * because a script makes them by the thousand.
 */
export class Scope {
  /** `$0`. */
  self = 'bash'
  /** Positional parameters. */
  args = NO_ARGUMENTS
  root = false
  stdin = UNKNOWN
  /** Inside a branch or a loop an assignment adds a value; elsewhere it replaces. */
  conditional = false
  looping = false
  depth = 0
  cwds = [UNKNOWN]
  /** `set -u`: reading what is not set ends the script. */
  nounset = false
  /** Names that a test has shown not to be empty. */
  sure: Layer<true>
  /** `IFS=, read …`: another `IFS` for one command. */
  borrowed: readonly string[] | undefined
  readonly functions: Layer<FunctionNode['body']>
  readonly aliases: Layer<string>
  /** Names that were read while nothing had set them. */
  readonly missing: Set<string>
  readonly #variables: Layer<string[]>
  readonly #arrays: Layer<string[]>
  readonly #references: Layer<string>

  constructor(outer?: Scope) {
    this.#variables = new Layer(outer === undefined ? undefined : outer.#variables)
    this.#arrays = new Layer(outer === undefined ? undefined : outer.#arrays)
    this.#references = new Layer(outer === undefined ? undefined : outer.#references)
    this.functions = new Layer(outer?.functions)
    this.aliases = new Layer(outer?.aliases)
    this.missing = outer?.missing ?? new Set()
    this.sure = new Layer(outer?.sure)
    if (outer === undefined) return
    this.self = outer.self
    this.args = outer.args
    this.root = outer.root
    this.stdin = outer.stdin
    this.conditional = outer.conditional
    this.looping = outer.looping
    this.depth = outer.depth
    this.cwds = outer.cwds
    this.nounset = outer.nounset
    this.borrowed = outer.borrowed
  }

  /** What a subshell sees: the same, and what it changes is its own. It must not outlive the next change here. */
  fork(changes?: ScopeChanges): Scope {
    return Object.assign(new Scope(this), changes)
  }

  lookup(name: string, index?: string): string[] {
    return this.#read(name, index, this.nounset ? UNKNOWN : '')
  }

  /** As `lookup`, where an unset name is no error: `${name:-…}`. */
  lookupOptional(name: string, index?: string): string[] {
    return this.#read(name, index, '')
  }

  /** The values that the script or its environment gave a name. */
  given(name: string): readonly string[] {
    return this.#variables.get(name) ?? []
  }

  assign(given: string, values: readonly string[]): void {
    const name = this.#targetOf(given)
    const before = this.conditional ? (this.#variables.get(name) ?? []) : []
    const next = this.conditional ? values.map(settled) : values
    this.#variables.set(name, [...new Set([...before, ...next])].slice(-MAX_VALUES))
    if (this.#arrays.get(name)) this.#arrays.delete(name)
    this.sure.delete(name)
  }

  assignArray(given: string, elements: readonly string[]): void {
    const name = this.#targetOf(given)
    const before = this.conditional ? (this.#arrays.get(name) ?? []) : []
    this.#arrays.set(name, [...before, ...elements].slice(0, 256))
  }

  append(given: string, values: readonly string[]): void {
    const name = this.#targetOf(given)
    const array = this.#arrays.get(name)
    if (array) this.#arrays.set(name, [...array, ...values.slice(0, 64)].slice(0, 4096))
    else {
      const before = this.#variables.get(name) ?? ['']
      const both = before.flatMap(old => values.map(value => settled(old + value)))
      this.#variables.set(name, both.slice(0, MAX_VALUES))
    }
  }

  /** `declare -n name=target`. */
  refer(name: string, target: string): void {
    if (name !== target) this.#references.set(name, target)
  }

  unset(name: string): void {
    this.sure.delete(name)
    if (this.conditional) return
    this.#variables.delete(name)
    this.#arrays.delete(name)
  }

  /** What divides an unquoted value into fields. */
  separators(): RegExp {
    const given = this.borrowed ?? this.#variables.get('IFS')
    return given === undefined ? BLANKS : separatorsOf(given.join(''))
  }

  #targetOf(name: string): string {
    let target = name
    for (let hops = 0; hops < MAX_REFERENCES; hops++) {
      const next = this.#references.get(target)
      if (next === undefined) return target
      target = next
    }
    return target
  }

  #read(given: string, index: string | undefined, whenUnset: string): string[] {
    if (given === '@' || given === '*') return [this.args.join(FIELD)]
    if (given === '0') return [this.self]
    const name = this.#targetOf(given)
    const array = this.#arrays.get(name)
    if (array) return lookupElement(array, index)
    const values = this.#valuesOf(name)
    if (this.sure.get(name)) {
      const set = values?.filter(value => value !== '') ?? []
      return set.length > 0 ? set : [UNKNOWN]
    }
    if (values) return [...values]
    if (!/^[A-Za-z_]/.test(name)) return [UNKNOWN]
    this.missing.add(name)
    return [whenUnset]
  }

  #valuesOf(name: string): readonly string[] | undefined {
    if (/^[1-9]\d*$/.test(name)) return [this.args[Number(name) - 1] ?? this.#missingArgument()]
    return this.#variables.get(name) ?? (name === 'PWD' ? this.cwds : WELL_KNOWN.get(name))
  }

  /** A branch of a script that got no arguments was not written for that case. */
  #missingArgument(): string {
    return this.args === NO_ARGUMENTS && this.conditional ? UNKNOWN : ''
  }
}

export const createScope = (options: {
  root: boolean
  env: Readonly<Record<string, string>>
  cwd: string | undefined
}): Scope => {
  const scope = new Scope()
  scope.root = options.root
  if (options.cwd !== undefined) scope.cwds = [options.cwd]
  for (const [name, value] of Object.entries(options.env)) scope.assign(name, [value])
  return scope
}

const settled = (value: string): string => (value.length > MAX_GROWN ? UNKNOWN : value)

const BLANKS = /[ \t\n]+/g

/** Blanks always count: an `IFS` that was set may have been set back. */
const separatorsOf = memo(
  (characters: string): RegExp => new RegExp(`[ \\t\\n${characters.replace(/[\]\\^-]/g, '\\$&')}]+`, 'g'),
)

const lookupElement = (array: readonly string[], index: string | undefined): string[] => {
  if (index === '@' || index === '*') return [array.join(FIELD)]
  const number = Number(index ?? 0)
  // `[key]=value` of an associative array; which key is asked for is not followed.
  if (!Number.isInteger(number))
    return array.slice(0, MAX_VALUES).map(element => element.replace(/^\[[^\]]*\]=/, ''))
  return [array.at(number) ?? '']
}

/** Set in every shell. What is not here and is not assigned is empty on the far side, and is read so. */
const WELL_KNOWN = new Map(
  Object.entries<string[]>({
    HOME: [HOME],
    IFS: [' '],
    ...Object.fromEntries(
      [
        'PATH',
        'OLDPWD',
        'USER',
        'LOGNAME',
        'SHELL',
        'HOSTNAME',
        'UID',
        'EUID',
        'PPID',
        'RANDOM',
        'SRANDOM',
        'SECONDS',
        'LINENO',
        'BASH',
        'BASHPID',
        'BASH_VERSION',
        'BASH_SOURCE',
        'EPOCHSECONDS',
        'EPOCHREALTIME',
        'FUNCNAME',
        'HOSTTYPE',
        'MACHTYPE',
        'OSTYPE',
        'OPTARG',
        'OPTIND',
        'PIPESTATUS',
        'REPLY',
        'SHLVL',
        'LANG',
        'TERM',
      ].map(name => [name, [UNKNOWN]]),
    ),
  }),
)
