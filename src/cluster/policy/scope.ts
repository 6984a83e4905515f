import type { SyntaxNode } from 'unbash'
import { UNKNOWN, UNKNOWN_DIRECTORY } from './paths.ts'

const MAX_TEXT = 65_536

/** What a shell would know at one point of a script, as far as the text tells. */
export class Scope {
  cwd: string = UNKNOWN_DIRECTORY
  root = false
  /** `set -u`: the shell stops at an unset variable instead of taking it for empty. */
  nounset = false
  /** How many scripts this one is inside of. */
  depth = 0
  readonly functions: Map<string, SyntaxNode>
  /** Variables that were used and that nobody sets. */
  readonly missing: Set<string>
  readonly #variables = new Map<string, string>()
  readonly #tested = new Set<string>()
  readonly #parent: Scope | undefined

  constructor(parent?: Scope) {
    this.#parent = parent
    this.functions = parent?.functions ?? new Map()
    this.missing = parent?.missing ?? new Set()
    if (!parent) return
    this.cwd = parent.cwd
    this.root = parent.root
    this.nounset = parent.nounset
    this.depth = parent.depth
  }

  fork(change: Partial<Pick<Scope, 'cwd' | 'root' | 'nounset' | 'depth'>> = {}): Scope {
    return Object.assign(new Scope(this), change)
  }

  set(name: string, value: string): void {
    this.#variables.set(name, value.length > MAX_TEXT ? UNKNOWN : value)
  }

  /** `[ -n "$DIR" ]`: the script cares about an empty variable itself. */
  markTested(name: string): void {
    this.#tested.add(name)
  }

  /** Undefined for a variable that nobody sets, which a shell takes for empty text. */
  get(name: string): string | undefined {
    const value = this.lookUp(name)
    return value || !(this.nounset || this.isTested(name)) ? value : UNKNOWN
  }

  lookUp(name: string): string | undefined {
    return this.#variables.get(name) ?? this.#parent?.lookUp(name)
  }

  isTested(name: string): boolean {
    return this.#tested.has(name) || (this.#parent?.isTested(name) ?? false)
  }
}
