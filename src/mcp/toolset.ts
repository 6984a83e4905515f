import { didYouMean } from '../jobs/nearest.ts'
import type { Tool } from './tool.ts'

/** Tools that belong together; chosen when a front starts. */
export interface Toolset {
  readonly name: string
  /** One line for the instructions. */
  readonly summary: string
  /** Served when nobody chose. */
  readonly byDefault: boolean
  /** What a model must know to use these tools together; a sentence or two. */
  readonly instructions?: string
  readonly tools: readonly Tool[]
  /** There is nothing to use them on now; they are listed when there is. Absent: they always are. */
  readonly dormant?: boolean
}

export interface Selection {
  /** Names of toolsets, `default` or `all`; absent: the default ones. */
  readonly toolsets?: readonly string[]
  /** Only tools that change nothing. Wins over everything else. */
  readonly readOnly?: boolean
  /** Names of the settings in the front's own environment. */
  readonly settings?: readonly string[]
}

export interface Selected {
  readonly toolsets: readonly Toolset[]
  readonly tools: readonly Tool[]
  /** What was asked for and is not there, in sentences: a wrong name must not stop a server. */
  readonly problems: readonly string[]
}

export const selectTools = (available: readonly Toolset[], selection: Selection): Selected => {
  const names = available.map(toolset => toolset.name)
  const wanted = new Set(selection.toolsets ?? ['default'])
  const problems = [...wanted]
    .filter(name => name !== 'default' && name !== 'all' && !names.includes(name))
    .map(name => `There is no toolset '${name}'${didYouMean(name, names) || '.'} Known: ${names.join(', ')}.`)
  const toolsets = available.filter(
    toolset => wanted.has('all') || wanted.has(toolset.name) || (wanted.has('default') && toolset.byDefault),
  )
  // A tool may belong to two toolsets; it is served once.
  const chosen = new Map(toolsets.flatMap(toolset => toolset.tools).map(tool => [tool.name, tool]))
  const tools = [...chosen.values()].flatMap(tool => (selection.readOnly ? withoutChanges(tool) : [tool]))
  return { toolsets, tools, problems }
}

const withoutChanges = (tool: Tool): Tool[] => {
  if (tool.annotations.readOnlyHint) return [tool]
  return tool.readOnly ? [tool.readOnly] : []
}
