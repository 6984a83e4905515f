import type { z } from 'zod'
import type { Deputy } from '../engine/deputy.ts'
import { compactSchema, type JsonSchema } from './compact-schema.ts'
import { parseInput } from './parse-input.ts'

/**
 * A tool as a toolset lists it. Adding one: write a file in `tools/<toolset>/` that exports `defineTool({…})`
 * and put it into that folder's list.
 */
export interface Tool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly annotations: Annotations
  readonly input: JsonSchema
  readonly output: JsonSchema
  /** Checks the arguments, then runs. Throws AppError; the server turns it into a result the model can act on. */
  call(args: unknown, context: ToolContext): Promise<ToolOutcome>
  /** Hints for particular clients. */
  readonly meta?: Readonly<Record<string, unknown>>
  /** What is left of a tool that can also change things where nothing may be changed. */
  readonly readOnly?: Tool
}

/** All four, always: a client assumes the worst of what is left out. */
export interface Annotations {
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
  readonly openWorldHint: boolean
}

export interface ToolContext {
  readonly deputy: Deputy
  /** Who asked, as jobs record it: `mcp:claude-code`. */
  readonly origin: string
  /** Directories of this computer that the client may name as a workspace. */
  readonly directories: readonly string[]
  /** Ends with the request. A job must never be tied to it. */
  readonly signal: AbortSignal
  /** Tells how a long call goes on; absent when the client did not ask for that. */
  readonly progress?: (message: string) => void
  /** Absent where the client has no way to ask. */
  readonly elicitation?: Elicitation
}

/** A client that can ask its user in the middle of a call, and what the user said when it was asked before. */
export interface Elicitation {
  readonly answer?: { readonly action: 'accept' | 'decline' | 'cancel'; readonly state: string }
}

export interface ToolOutcome {
  /** The whole answer: many clients show the model nothing else. */
  readonly data: Readonly<Record<string, unknown>>
  /** The job this call has started; a client that knows MCP tasks gets it as a task. */
  readonly startedJob?: string
  /** Nothing was done: the user must agree first. The client calls again with the answer and the state. */
  readonly question?: { readonly message: string; readonly state: string }
}

export interface ToolDefinition<Input extends z.ZodObject, Output extends z.ZodObject> {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly annotations: Annotations
  /** A `z.strictObject`: a misspelt argument is an error, not a silent default. */
  readonly input: Input
  /** A `z.looseObject`: fields may be added without breaking a client. */
  readonly output: Output
  run(input: z.output<Input>, context: ToolContext): Promise<ToolOutcome>
}

export const defineTool = <Input extends z.ZodObject, Output extends z.ZodObject>(
  definition: ToolDefinition<Input, Output>,
): Tool => {
  const { name, title, description, annotations, input, output } = definition
  return {
    name,
    title,
    description,
    annotations,
    input: compactSchema(input, 'input'),
    output: compactSchema(output, 'output'),
    call: async (args, context) => definition.run(parseInput(input, args, name), context),
  }
}

/** Looks, and changes nothing. `openWorld`: it asks a system outside of Deputy. */
export const reads = (openWorld = false): Annotations => ({
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: openWorld,
})

/** Changes something. Say whether it can destroy, and whether a second identical call changes nothing more. */
export const changes = (kind: {
  destructive: boolean
  idempotent: boolean
  openWorld: boolean
}): Annotations => ({
  readOnlyHint: false,
  destructiveHint: kind.destructive,
  idempotentHint: kind.idempotent,
  openWorldHint: kind.openWorld,
})
