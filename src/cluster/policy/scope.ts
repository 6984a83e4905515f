import type { Function as FunctionNode } from 'unbash'
import { FIELD, HOME, UNKNOWN } from './text.ts'

const MAX_VALUES = 8

/** What a script may know at one point: every value its variables may have, where it is, and who it is. */
export interface Scope {
  readonly functions: Map<string, FunctionNode['body']>
  readonly aliases: Map<string, string>
  /** Positional parameters. */
  args: string[]
  root: boolean
  stdin: string
  /** Inside a branch or a loop an assignment adds a value; elsewhere it replaces. */
  conditional: boolean
  depth: number
  cwds: string[]
  lookup(name: string, index?: string): string[]
  assign(name: string, values: readonly string[]): void
  assignArray(name: string, elements: readonly string[]): void
  append(name: string, values: readonly string[]): void
  unset(name: string): void
  /** What a subshell sees: the same, changed by nobody else. */
  fork(changes?: Partial<Pick<Scope, 'root' | 'stdin' | 'conditional' | 'depth' | 'args'>>): Scope
  /** Names that were read while nothing had set them. */
  readonly missing: Set<string>
}

interface Seed {
  variables: Map<string, string[]>
  arrays: Map<string, string[]>
  functions: Map<string, FunctionNode['body']>
  aliases: Map<string, string>
  missing: Set<string>
  args: string[]
  root: boolean
  stdin: string
  conditional: boolean
  depth: number
  cwds: string[]
}

export const createScope = (options: {
  root: boolean
  env: Readonly<Record<string, string>>
  cwd: string | undefined
}): Scope =>
  fromSeed({
    variables: new Map(Object.entries(options.env).map(([name, value]) => [name, [value]])),
    arrays: new Map(),
    functions: new Map(),
    aliases: new Map(),
    missing: new Set(),
    args: [],
    root: options.root,
    stdin: UNKNOWN,
    conditional: false,
    depth: 0,
    cwds: [options.cwd ?? UNKNOWN],
  })

const fromSeed = (seed: Seed): Scope => {
  const { variables, arrays } = seed
  const scope: Scope = {
    functions: seed.functions,
    aliases: seed.aliases,
    missing: seed.missing,
    args: seed.args,
    root: seed.root,
    stdin: seed.stdin,
    conditional: seed.conditional,
    depth: seed.depth,
    cwds: seed.cwds,
    lookup: (name, index) => {
      if (name === '@' || name === '*') return [scope.args.join(FIELD)]
      if (/^\d+$/.test(name) && name !== '0') return [scope.args[Number(name) - 1] ?? '']
      const array = arrays.get(name)
      if (array) return lookupElement(array, index)
      const values = variables.get(name) ?? WELL_KNOWN.get(name)
      if (values) return values
      if (!/^[A-Za-z_]/.test(name)) return [UNKNOWN]
      seed.missing.add(name)
      return ['']
    },
    assign: (name, values) => {
      const before = scope.conditional ? (variables.get(name) ?? []) : []
      variables.set(name, [...new Set([...before, ...values])].slice(-MAX_VALUES))
      arrays.delete(name)
    },
    assignArray: (name, elements) => {
      const before = scope.conditional ? (arrays.get(name) ?? []) : []
      arrays.set(name, [...before, ...elements].slice(0, 256))
    },
    append: (name, values) => {
      const array = arrays.get(name)
      if (array) array.push(...values.slice(0, 64))
      else {
        const before = variables.get(name) ?? ['']
        variables.set(name, before.flatMap(old => values.map(value => old + value)).slice(0, MAX_VALUES))
      }
    },
    unset: name => {
      if (scope.conditional) return
      variables.delete(name)
      arrays.delete(name)
    },
    fork: changes =>
      fromSeed({
        variables: new Map(variables),
        arrays: new Map([...arrays].map(([name, elements]) => [name, [...elements]])),
        functions: new Map(scope.functions),
        aliases: new Map(scope.aliases),
        missing: seed.missing,
        args: scope.args,
        root: scope.root,
        stdin: scope.stdin,
        conditional: scope.conditional,
        depth: scope.depth,
        cwds: scope.cwds,
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
    '0': ['bash'],
    ...Object.fromEntries(
      [
        'PATH',
        'PWD',
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
