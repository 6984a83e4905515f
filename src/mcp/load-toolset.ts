import { z } from 'zod'
import { defineTool, reads, type Tool } from './tool.ts'
import type { Toolset } from './toolset.ts'

/**
 * A tool that loads more toolsets into the running session, so that the list is short until the model needs more. The
 * client learns of the new tools by `notifications/tools/list_changed`.
 */
export const loadToolsetTool = (
  others: readonly Toolset[],
  /** Registers the tools of a toolset and returns their names. */
  load: (toolset: Toolset) => readonly string[],
): Tool => {
  const names = others.map(({ name }) => name)
  return defineTool({
    name: 'use_toolset',
    title: 'Load more tools',
    description: 'Add the tools of a toolset to this session.',
    annotations: reads(),
    input: z.strictObject({ toolset: z.enum(names as [string, ...string[]]) }),
    run: async ({ toolset }) => {
      const found = others.find(({ name }) => name === toolset)!
      return {
        data: { toolset, tools: load(found), next: 'These tools are in the tool list now; call them.' },
      }
    },
  })
}
