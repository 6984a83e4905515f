import type { SyntaxNode } from 'unbash'
import { UNKNOWN, UNKNOWN_DIRECTORY } from './protected-paths.ts'

const MAX_TEXT = 65_536

/** What a shell knows at one point of a script, as far as the text shows it. */
export interface Scope {
  cwd: string
  root: boolean
  /** `set -u`: the shell stops at an unset variable instead of expanding it to nothing. */
  nounset: boolean
  /** How many scripts and function calls enclose this one. */
  readonly depth: number
  /** The command runs in the background or in a pipeline of the function that is being called. */
  readonly background: boolean
  /** Names of the functions that are being called, outermost first. */
  readonly calls: readonly string[]
  readonly functions: Map<string, SyntaxNode>
  /** Variables that the script uses and nothing sets. */
  readonly missing: Set<string>
  readonly variables: Map<string, string>
  readonly parent: Scope | undefined
}

export const createScope = (given: { cwd?: string; root?: boolean } = {}): Scope => ({
  ...{ cwd: given.cwd ?? UNKNOWN_DIRECTORY, root: given.root ?? false, nounset: false },
  ...{ depth: 0, background: false, calls: [], parent: undefined },
  ...{ functions: new Map(), missing: new Set(), variables: new Map() },
})

export const fork = (scope: Scope, change: Partial<Scope> = {}): Scope => ({
  ...scope,
  ...{ variables: new Map(), parent: scope },
  ...change,
})

export const setVariable = (scope: Scope, name: string, value: string): void => {
  scope.variables.set(name, value.length > MAX_TEXT ? UNKNOWN : value)
}

/** Undefined for a variable that nothing sets, which a shell expands to nothing. */
export const getVariable = ({ variables, parent }: Scope, name: string): string | undefined =>
  variables.get(name) ?? (parent && getVariable(parent, name))

/** `[ -n "$DIR" ]`: the script itself takes care of an empty variable. */
export const markTested = (scope: Scope, name: string): void => {
  if (!getVariable(scope, name)) setVariable(scope, name, UNKNOWN)
}
