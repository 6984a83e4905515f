import type { FlagSpecs, Parsed } from './args/spec.ts'
import type { Context } from './context.ts'

/**
 * One command. Its module imports statically only what every run needs and the rest on use, so that the CLI starts fast.
 */
export interface Command<F extends FlagSpecs = FlagSpecs> {
  /** What follows the name: `[flags] ID`. */
  readonly usage: string
  readonly description?: string
  readonly examples?: readonly (readonly [command: string, what: string])[]
  readonly flags: F
  /** Words a shell may offer for the first argument. */
  readonly words?: readonly string[]
  /** Values a shell may offer for the argument after the first. */
  suggest?(context: Context, first: string): Promise<readonly string[]>
  /** Its arguments are ids of jobs. */
  readonly takesJobs?: boolean
  /** True if this word begins the job's command. The words after it, flags included, are passed on unparsed. */
  readonly stopAt?: (word: string, place: number) => boolean
  /** Resolves with the exit status. */
  run(context: Context, input: Parsed<F>): Promise<number>
}

/** Any command, whatever its flags are. */
export interface AnyCommand extends Omit<Command, 'run'> {
  run(context: Context, input: never): Promise<number>
}

/** A command with its entry in the list of commands. */
export interface NamedCommand extends AnyCommand {
  readonly name: string
  readonly summary: string
}

export const defineCommand = <const F extends FlagSpecs>(command: Command<F>): Command<F> => command
