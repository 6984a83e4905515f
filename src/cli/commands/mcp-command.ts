import { unknownSubcommand, usage } from '../args/parse.ts'
import { JSON_FLAG } from '../args/spec.ts'
import { defineCommand } from '../command.ts'
import { CLIENT_NAMES } from '../mcp-clients/clients.ts'

const VERBS = ['install', 'uninstall']

export default defineCommand({
  usage: '[flags] | install CLIENT [flags] | uninstall CLIENT',
  description: `Without a word it speaks MCP on stdin and stdout, for clients to start. With install it adds itself to the
configuration of a client, with uninstall it removes itself again: ${CLIENT_NAMES.join(', ')}.`,
  examples: [
    ['claude mcp add deputy -- deputy mcp', 'set up Claude Code by hand'],
    ['deputy mcp install cursor', 'set up Cursor'],
    ['deputy mcp install vscode --print', 'only show what would be written'],
  ],
  flags: {
    toolsets: { type: 'string', value: 'NAME,…', summary: 'Which tools to offer' },
    'read-only': { type: 'boolean', summary: 'Only tools that change nothing' },
    print: { type: 'boolean', summary: 'install: print the configuration instead of writing it' },
    name: { type: 'string', value: 'NAME', summary: 'install: what the client calls it (default deputy)' },
    json: JSON_FLAG,
  },
  words: VERBS,
  suggest: async (_, first) => (VERBS.includes(first) ? CLIENT_NAMES : []),
  async run(context, { flags, args }) {
    const [verb, client] = args
    if (verb !== 'install' && verb !== 'uninstall') throw unknownSubcommand('mcp', verb, VERBS)
    if (client === undefined) throw usage(`No client given. Use one of ${CLIENT_NAMES.join(', ')}.`, 'mcp')
    const { installClient, uninstallClient } = await import('../mcp-clients/install.ts')
    if (verb === 'uninstall') return uninstallClient(context, { client, name: flags.name ?? 'deputy' })
    return installClient(context, {
      client,
      name: flags.name ?? 'deputy',
      print: flags.print,
      json: flags.json,
      flags: [
        ...(flags.toolsets === undefined ? [] : ['--toolsets', flags.toolsets]),
        ...(flags['read-only'] ? ['--read-only'] : []),
      ],
    })
  },
})
