import { didYouMean } from '../jobs/nearest.ts'
import type { Tool } from './tool.ts'

/** A group of tools. Clients choose toolsets when they connect. */
export interface Toolset {
  readonly name: string
  /** One line for the instructions. */
  readonly summary: string
  /** Served when the client selects no toolsets. */
  readonly byDefault: boolean
  /** How to use these tools together, for the model; one or two sentences. */
  readonly instructions?: string
  readonly tools: readonly Tool[]
  /** The tools have nothing to work on at the moment, so they are not listed. Absent: they are always listed. */
  readonly unlisted?: boolean
}

export interface Selection {
  /** Names of toolsets, `default` or `all`; absent: the default ones. */
  readonly toolsets?: readonly string[]
  /** Serve only tools that change nothing. Overrides everything else. */
  readonly readOnly?: boolean
  /** Names of the settings in the environment of the bridge. */
  readonly settings?: readonly string[]
}

export interface Selected {
  readonly toolsets: readonly Toolset[]
  readonly tools: readonly Tool[]
  /** One sentence for each unknown toolset: a wrong name must not stop the server. */
  readonly problems: readonly string[]
  /** Toolsets that the client asked for by name. They are served even while they are unlisted. */
  readonly named: ReadonlySet<string>
}

export const selectTools = (available: readonly Toolset[], selection: Selection): Selected => {
  const names = available.map(toolset => toolset.name)
  const wanted = new Set(selection.toolsets ?? ['default'])
  const problems = [...wanted]
    .filter(name => name !== 'default' && name !== 'all' && !names.includes(name))
    .map(name => `No toolset '${name}'${didYouMean(name, names) || '.'} Known: ${names.join(', ')}.`)
  const toolsets = available.filter(
    toolset => wanted.has('all') || wanted.has(toolset.name) || (wanted.has('default') && toolset.byDefault),
  )
  // A tool can belong to several toolsets.
  const chosen = new Map(toolsets.flatMap(toolset => toolset.tools).map(tool => [tool.name, tool]))
  const tools = [...chosen.values()].flatMap(tool => (selection.readOnly ? withoutChanges(tool) : [tool]))
  return { toolsets, tools, problems, named: new Set(selection.toolsets) }
}

const withoutChanges = (tool: Tool): Tool[] => {
  if (tool.annotations.readOnlyHint) return [tool]
  return tool.readOnly ? [tool.readOnly] : []
}
