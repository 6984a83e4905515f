import type { z } from 'zod'
import type { Deputy } from '../engine/deputy.ts'
import { compactSchema, type JsonSchema } from './compact-schema.ts'
import { parseInput } from './parse-input.ts'

/**
 * A tool of a toolset. To add one, write a file in `tools/<toolset>/` that exports `defineTool({…})` and add it to the
 * list of the toolset.
 */
export interface Tool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly annotations: Annotations
  readonly input: JsonSchema
  /** Validates the arguments, then runs. Throws AppError, which the server turns into an error result. */
  call(args: unknown, context: ToolContext): Promise<ToolOutcome>
  /** Hints for particular clients. */
  readonly meta?: Readonly<Record<string, unknown>>
  /** The read-only variant of a tool that can also change things. */
  readonly readOnly?: Tool
}

/** All four are required: clients assume the worst for a missing one. */
export interface Annotations {
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
  readonly openWorldHint: boolean
}

export interface ToolContext {
  readonly deputy: Deputy
  /** The client as jobs record it, such as `mcp:claude-code`. */
  readonly origin: string
  /** Directories of this computer that the client may name as a workspace. */
  readonly directories: readonly string[]
  /** Aborted when the request ends. Never pass it to a job: jobs outlive requests. */
  readonly signal: AbortSignal
  /** Reports the progress of a long call; absent when the client did not ask for it. */
  readonly progress?: (message: string) => void
  /** Absent when the client cannot ask its user. */
  readonly elicitation?: Elicitation
}

/** The client can ask its user during a call. `answer` is the user's answer to the previous question. */
export interface Elicitation {
  readonly answer?: { readonly action: 'accept' | 'decline' | 'cancel'; readonly state: string }
}

export interface ToolOutcome {
  /** The complete result: many clients show the model nothing else. */
  readonly data: Readonly<Record<string, unknown>>
  /** The job that this call started. Clients that support MCP tasks get it as a task. */
  readonly startedJob?: string
  /** The user must confirm first; nothing was done. The client repeats the call with the answer and the state. */
  readonly question?: {
    readonly message: string
    readonly state: string
    /** Text beside the checkbox. Default: "This cannot be undone". */
    readonly note?: string
  }
}

export interface ToolDefinition<Input extends z.ZodObject> {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly annotations: Annotations
  /** Use `z.strictObject`, so that a misspelt argument is an error and not ignored. */
  readonly input: Input
  run(input: z.output<Input>, context: ToolContext): Promise<ToolOutcome>
}

export const defineTool = <Input extends z.ZodObject>(definition: ToolDefinition<Input>): Tool => {
  const { name, title, description, annotations, input } = definition
  return {
    name,
    title,
    description,
    annotations,
    input: compactSchema(input),
    call: async (args, context) => definition.run(parseInput(input, args, name), context),
  }
}

/** Annotations of a tool that changes nothing. `openWorld`: it calls a system outside of Deputy. */
export const reads = (openWorld = false): Annotations => ({
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: openWorld,
})

/** Annotations of a tool that changes something. `idempotent`: a second identical call changes nothing more. */
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
