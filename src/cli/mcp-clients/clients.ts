import { homedir } from 'node:os'
import { join } from 'node:path'

export interface ServerEntry {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  /** Variables that the server needs, such as DEPUTY_HOME. */
  readonly env: Readonly<Record<string, string>>
}

export interface Place {
  readonly env: NodeJS.ProcessEnv
  readonly platform: NodeJS.Platform
}

/** How a server is added to one MCP client. */
export interface McpClient {
  /** The client's own commands for it. */
  readonly program?: {
    add(server: ServerEntry): readonly string[]
    remove(name: string): readonly string[]
  }
  readonly file?: (place: Place) => string
  /** The JSON key under which servers are listed; TOML files have tables of this name. */
  readonly key?: string
  readonly format?: 'toml'
  readonly entry?: (server: ServerEntry) => Record<string, unknown>
  /** A desktop program does not have the PATH of a shell, so it gets absolute paths. */
  readonly isDesktop?: boolean
}

const withEnv = (env: ServerEntry['env'], key = 'env') => (Object.keys(env).length > 0 ? { [key]: env } : {})
const plain = ({ command, args, env }: ServerEntry) => ({ command, args, ...withEnv(env) })
const typed = (server: ServerEntry) => ({ type: 'stdio', ...plain(server) })

const home = ({ env }: Place): string => env.HOME || homedir()
const inHome =
  (...parts: string[]) =>
  (place: Place): string =>
    join(home(place), ...parts)

const configHome = (place: Place): string => place.env.XDG_CONFIG_HOME || join(home(place), '.config')

/** Where desktop programs keep their settings. */
const inAppData =
  (...parts: string[]) =>
  (place: Place): string => {
    if (place.platform === 'darwin') return join(home(place), 'Library', 'Application Support', ...parts)
    if (place.platform === 'win32')
      return join(place.env.APPDATA || join(home(place), 'AppData', 'Roaming'), ...parts)
    return join(configHome(place), ...parts)
  }

export const CLIENTS: Readonly<Record<string, McpClient>> = {
  claude: {
    program: {
      add: ({ name, command, args, env }) => [
        ...['claude', 'mcp', 'add', '--scope', 'user', name],
        ...Object.entries(env).flatMap(([key, value]) => ['--env', `${key}=${value}`]),
        ...['--', command, ...args],
      ],
      remove: name => ['claude', 'mcp', 'remove', '--scope', 'user', name],
    },
  },
  'claude-desktop': {
    file: inAppData('Claude', 'claude_desktop_config.json'),
    key: 'mcpServers',
    entry: plain,
    isDesktop: true,
  },
  cursor: { file: inHome('.cursor', 'mcp.json'), key: 'mcpServers', entry: plain, isDesktop: true },
  vscode: { file: inAppData('Code', 'User', 'mcp.json'), key: 'servers', entry: typed, isDesktop: true },
  windsurf: {
    file: inHome('.codeium', 'windsurf', 'mcp_config.json'),
    key: 'mcpServers',
    entry: plain,
    isDesktop: true,
  },
  gemini: { file: inHome('.gemini', 'settings.json'), key: 'mcpServers', entry: plain },
  codex: {
    file: place => join(place.env.CODEX_HOME || join(home(place), '.codex'), 'config.toml'),
    key: 'mcp_servers',
    format: 'toml',
    entry: plain,
  },
  copilot: {
    file: place => join(place.env.COPILOT_HOME || join(home(place), '.copilot'), 'mcp-config.json'),
    key: 'mcpServers',
    entry: server => ({ type: 'local', ...plain(server), tools: ['*'] }),
  },
  zed: {
    file: place =>
      place.platform === 'win32'
        ? inAppData('Zed', 'settings.json')(place)
        : join(configHome(place), 'zed', 'settings.json'),
    key: 'context_servers',
    entry: plain,
    isDesktop: true,
  },
  opencode: {
    file: place => join(configHome(place), 'opencode', 'opencode.json'),
    key: 'mcp',
    entry: ({ command, args, env }) => ({
      type: 'local',
      command: [command, ...args],
      enabled: true,
      ...withEnv(env, 'environment'),
    }),
  },
  cline: {
    file: place =>
      place.env.CLINE_MCP_SETTINGS_PATH ||
      join(home(place), '.cline', 'data', 'settings', 'cline_mcp_settings.json'),
    key: 'mcpServers',
    entry: plain,
    isDesktop: true,
  },
  jetbrains: { file: inHome('.junie', 'mcp', 'mcp.json'), key: 'mcpServers', entry: plain, isDesktop: true },
  project: { file: () => join(process.cwd(), '.mcp.json'), key: 'mcpServers', entry: typed },
}

export const CLIENT_NAMES = Object.keys(CLIENTS)
