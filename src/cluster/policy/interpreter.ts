import type { SyntaxNode } from 'unbash'
import type { Expander } from './expand.ts'
import type { Files } from './files.ts'
import type { Refusal } from './rules.ts'
import type { Scope } from './scope.ts'

export interface Visitor {
  /** Called for every simple command with the words it may run with, and again with wrappers taken off. */
  command(argv: readonly string[], scope: Scope): Refusal | undefined
  enabled?(rule: string): boolean
  /** Words that may be a command to a program unknown here are followed as well. */
  wary?: boolean
}

/** What the parts of the reader share while they read one script. */
export interface Interpreter {
  readonly expander: Expander
  readonly visitor: Visitor
  /** Output of the process substitutions met so far, by number. */
  readonly processes: string[]
  /** What the script itself wrote. */
  readonly files: Files
  /** How many temporary files were asked for. */
  temporaries: number
  /** A guess is being followed, and makes no further ones. */
  guessing: boolean
  /** Much has been read: what comes again is passed over unless it is given something dangerous. */
  hurried: boolean
  /** Functions read since then. */
  readonly passed: Set<SyntaxNode>
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
  /** The same for text that is made or read. */
  spend(length: number): void
}

export class Refused extends Error {
  readonly refusal: Refusal
  constructor(refusal: Refusal) {
    super(refusal.reason)
    this.refusal = refusal
  }
}

export const tooComplex = (why: string): Refused =>
  new Refused({ rule: 'too-complex', reason: `it ${why} to be read before it is run` })
