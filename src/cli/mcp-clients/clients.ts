import { join } from 'node:path'

export interface ServerEntry {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
}

/** How a server is added to one MCP client. */
export interface McpClient {
  /** The client's own command for it. */
  readonly program?: (server: ServerEntry) => readonly string[]
  /** Its JSON file, and the key under which servers are listed. */
  readonly file?: (home: string, platform: NodeJS.Platform) => string
  readonly key?: string
  readonly entry?: (server: ServerEntry) => unknown
  /** For files that are not JSON: the text to add, and how to see that it is there. */
  readonly text?: (server: ServerEntry) => { readonly text: string; readonly mark: string }
}

const plain = ({ command, args }: ServerEntry) => ({ command, args })
const typed = ({ command, args }: ServerEntry) => ({ type: 'stdio', command, args })

const appData = (home: string, platform: NodeJS.Platform, ...parts: string[]): string => {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', ...parts)
  return platform === 'win32' ? join(home, 'AppData', 'Roaming', ...parts) : join(home, '.config', ...parts)
}

export const CLIENTS = {
  claude: {
    program: ({ name, command, args }) => [
      'claude',
      'mcp',
      'add',
      '--scope',
      'user',
      name,
      '--',
      command,
      ...args,
    ],
  },
  'claude-desktop': {
    file: (home, platform) => appData(home, platform, 'Claude', 'claude_desktop_config.json'),
    key: 'mcpServers',
    entry: plain,
  },
  cursor: { file: home => join(home, '.cursor', 'mcp.json'), key: 'mcpServers', entry: plain },
  vscode: {
    file: (home, platform) => appData(home, platform, 'Code', 'User', 'mcp.json'),
    key: 'servers',
    entry: typed,
  },
  windsurf: {
    file: home => join(home, '.codeium', 'windsurf', 'mcp_config.json'),
    key: 'mcpServers',
    entry: plain,
  },
  gemini: { file: home => join(home, '.gemini', 'settings.json'), key: 'mcpServers', entry: plain },
  codex: {
    file: home => join(home, '.codex', 'config.toml'),
    text: ({ name, command, args }) => ({
      // A JSON string or list of strings is the same in TOML.
      text: `[mcp_servers.${name}]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n`,
      mark: `[mcp_servers.${name}]`,
    }),
  },
  project: { file: () => join(process.cwd(), '.mcp.json'), key: 'mcpServers', entry: typed },
} as const satisfies Record<string, McpClient>

export const CLIENT_NAMES = Object.keys(CLIENTS)
