import type { Function as FunctionNode } from 'unbash'
import { type Layer, layer } from './layer.ts'
import { FIELD, HOME, UNKNOWN } from './text.ts'

const MAX_VALUES = 8
const MAX_REFERENCES = 8

/** What a script may know at one point: every value its variables may have, where it is, and who it is. */
export interface Scope {
  readonly functions: Layer<FunctionNode['body']>
  readonly aliases: Layer<string>
  /** `$0`. */
  self: string
  /** Positional parameters. */
  args: string[]
  root: boolean
  stdin: string
  /** Inside a branch or a loop an assignment adds a value; elsewhere it replaces. */
  conditional: boolean
  depth: number
  cwds: string[]
  /** `set -u`: reading what is not set ends the script. */
  nounset: boolean
  /** Names that a test has shown not to be empty. */
  sure: Set<string>
  lookup(name: string, index?: string): string[]
  /** As `lookup`, where an unset name is no error: `${name:-…}`. */
  lookupOptional(name: string, index?: string): string[]
  assign(name: string, values: readonly string[]): void
  assignArray(name: string, elements: readonly string[]): void
  append(name: string, values: readonly string[]): void
  /** `declare -n name=target`. */
  refer(name: string, target: string): void
  unset(name: string): void
  /** What a subshell sees: the same, and what it changes is its own. It must not outlive the next change here. */
  fork(changes?: ScopeChanges): Scope
  /** Names that were read while nothing had set them. */
  readonly missing: Set<string>
}

export type ScopeChanges = Partial<
  Pick<Scope, 'root' | 'stdin' | 'conditional' | 'depth' | 'args' | 'self' | 'nounset'>
>

type Seed = Pick<
  Scope,
  | 'functions'
  | 'aliases'
  | 'self'
  | 'args'
  | 'root'
  | 'stdin'
  | 'conditional'
  | 'depth'
  | 'cwds'
  | 'nounset'
  | 'sure'
  | 'missing'
> & {
  variables: Layer<string[]>
  arrays: Layer<string[]>
  references: Layer<string>
}

export const createScope = (options: {
  root: boolean
  env: Readonly<Record<string, string>>
  cwd: string | undefined
}): Scope => {
  const variables = layer<string[]>()
  for (const [name, value] of Object.entries(options.env)) variables.set(name, [value])
  return fromSeed({
    variables,
    arrays: layer(),
    references: layer(),
    functions: layer(),
    aliases: layer(),
    missing: new Set(),
    sure: new Set(),
    self: 'bash',
    args: [],
    root: options.root,
    stdin: UNKNOWN,
    conditional: false,
    depth: 0,
    cwds: [options.cwd ?? UNKNOWN],
    nounset: false,
  })
}

const fromSeed = (seed: Seed): Scope => {
  const { variables, arrays, references, ...shared } = seed

  const targetOf = (name: string): string => {
    let target = name
    for (let hops = 0; hops < MAX_REFERENCES; hops++) {
      const next = references.get(target)
      if (next === undefined) return target
      target = next
    }
    return target
  }

  const valuesOf = (name: string): readonly string[] | undefined => {
    if (/^[1-9]\d*$/.test(name)) return [scope.args[Number(name) - 1] ?? '']
    return variables.get(name) ?? (name === 'PWD' ? scope.cwds : WELL_KNOWN.get(name))
  }

  const read = (given: string, index: string | undefined, whenUnset: string): string[] => {
    if (given === '@' || given === '*') return [scope.args.join(FIELD)]
    if (given === '0') return [scope.self]
    const name = targetOf(given)
    const array = arrays.get(name)
    if (array) return lookupElement(array, index)
    const values = valuesOf(name)
    if (scope.sure.has(name)) {
      const set = values?.filter(value => value !== '') ?? []
      return set.length > 0 ? set : [UNKNOWN]
    }
    if (values) return [...values]
    if (!/^[A-Za-z_]/.test(name)) return [UNKNOWN]
    seed.missing.add(name)
    return [whenUnset]
  }

  const scope: Scope = {
    ...shared,
    lookup: (name, index) => read(name, index, scope.nounset ? UNKNOWN : ''),
    lookupOptional: (name, index) => read(name, index, ''),
    assign: (given, values) => {
      const name = targetOf(given)
      const before = scope.conditional ? (variables.get(name) ?? []) : []
      variables.set(name, [...new Set([...before, ...values])].slice(-MAX_VALUES))
      arrays.delete(name)
      scope.sure.delete(name)
    },
    assignArray: (given, elements) => {
      const name = targetOf(given)
      const before = scope.conditional ? (arrays.get(name) ?? []) : []
      arrays.set(name, [...before, ...elements].slice(0, 256))
    },
    append: (given, values) => {
      const name = targetOf(given)
      const array = arrays.get(name)
      if (array) arrays.set(name, [...array, ...values.slice(0, 64)].slice(0, 4096))
      else {
        const before = variables.get(name) ?? ['']
        variables.set(name, before.flatMap(old => values.map(value => old + value)).slice(0, MAX_VALUES))
      }
    },
    refer: (name, target) => {
      if (name !== target) references.set(name, target)
    },
    unset: name => {
      scope.sure.delete(name)
      if (scope.conditional) return
      variables.delete(name)
      arrays.delete(name)
    },
    fork: changes =>
      fromSeed({
        variables: layer(variables),
        arrays: layer(arrays),
        references: layer(references),
        functions: layer(scope.functions),
        aliases: layer(scope.aliases),
        missing: seed.missing,
        sure: new Set(scope.sure),
        self: scope.self,
        args: scope.args,
        root: scope.root,
        stdin: scope.stdin,
        conditional: scope.conditional,
        depth: scope.depth,
        cwds: scope.cwds,
        nounset: scope.nounset,
        ...changes,
      }),
  }
  return scope
}

const lookupElement = (array: readonly string[], index: string | undefined): string[] => {
  if (index === '@' || index === '*') return [array.join(FIELD)]
  const number = Number(index ?? 0)
  if (!Number.isInteger(number)) return [...array].slice(0, MAX_VALUES)
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
