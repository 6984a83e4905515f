import { McpServer, type ServerEventBus } from '@modelcontextprotocol/server'
import type { ServerFactory } from '../../../../src/mcp/bridge-client.ts'
import { createServerFactory } from '../../../../src/mcp/server-factory.ts'
import type { Selection } from '../../../../src/mcp/toolset.ts'
import { createMemoryDeputy } from '../../memory-deputy.ts'
import { dependencies } from '../clients.ts'
import { registerContent } from './content.ts'
import { registerInteraction } from './interaction.ts'
import { createFixtureTasks } from './tasks.ts'

/** The product's factory, with everything on top that the official conformance suite wants to find. */
export const createFixtureFactory = (bus: ServerEventBus): ((selection: Selection) => ServerFactory) => {
  const tasks = createFixtureTasks()
  return selection => {
    const factory = createServerFactory({
      ...dependencies(createMemoryDeputy()),
      ...selection,
      tasks: tasks.source,
    })
    return async context => {
      const server = await factory(context)
      if (!(server instanceof McpServer)) throw new Error('the factory made something else')
      server.server.registerCapabilities({
        logging: {},
        tools: { listChanged: true },
        prompts: { listChanged: true },
      })
      registerContent(server)
      registerInteraction(server, context.era)
      if (context.era === 'modern') {
        tasks.register(server)
        registerTriggers(server, bus)
      }
      return server
    }
  }
}

/** Tools whose call is announced as a change of a list. */
const registerTriggers = (server: McpServer, bus: ServerEventBus) => {
  for (const [name, kind] of [
    ['test_trigger_tool_change', 'tools_list_changed'],
    ['test_trigger_prompt_change', 'prompts_list_changed'],
  ] as const)
    server.registerTool(name, { description: `Fixture ${name} of the conformance suite` }, () => {
      bus.publish({ kind })
      return { content: [{ type: 'text', text: 'announced' }] }
    })
}
