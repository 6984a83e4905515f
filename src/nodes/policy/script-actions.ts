import type { SyntaxNode } from 'unbash'
import type { Expander } from './expand-words.ts'
import type { Scope } from './shell-scope.ts'

/** Something that a script does, as far as its text shows. */
export type Action =
  | { kind: 'run'; argv: readonly string[]; cwd: string; root: boolean }
  | { kind: 'write'; path: string; cwd: string; append: boolean }
  /** Text that is passed to a shell or an interpreter. */
  | { kind: 'script'; text: string; root: boolean }
  | { kind: 'fork-bomb'; name: string }

/** Follows the parts of a script. Each `run` function returns what the part prints, as far as the text shows it. */
export interface Interpreter {
  report(action: Action): void
  /** Counts steps, and throws `TooComplex` when there were too many. */
  spend(steps: number): void
  readonly expander: Expander
  runScript(text: string, scope: Scope): string
  runAll(nodes: readonly SyntaxNode[], scope: Scope, stdin?: string): string
  runNode(node: SyntaxNode, scope: Scope, stdin: string): string
  runArgv(argv: readonly string[], scope: Scope, stdin: string): string
}

/** Stands for text that comes from a server. */
export const DOWNLOADED = '\uE001'

/** Scripts and function calls within each other. */
export const MAX_DEPTH = 12
