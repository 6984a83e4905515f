import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { settingNames } from '../config/setting-names.ts'
import { runMain } from './run-main.ts'

export interface FormerServer {
  /** The toolsets that the server had; `--toolsets` and DEPUTY_TOOLSETS take precedence. */
  readonly toolsets: string
  /** Whether it read `.env` in the working directory. */
  readonly dotenv?: boolean
  /** Its default settings for a Proxmox cluster, where they differ from Deputy's. */
  readonly defaults?: Readonly<Record<string, string>>
}

/** Runs the bridge under the name, with the tools and with the settings of a server that Deputy replaces. */
export const runFormerServer = async ({
  toolsets,
  dotenv = false,
  defaults = {},
}: FormerServer): Promise<void> => {
  const { env } = process
  const file = dotenv ? readDotenv() : {}
  for (const name of settingNames(file)) env[name] ??= file[name]
  if (env.PROXMOX_HOST) for (const [name, value] of Object.entries(defaults)) env[name] ??= value
  env.DEPUTY_TOOLSETS ??= toolsets
  await runMain(['mcp', ...process.argv.slice(2)])
}

/**
 * A project that the user opens can contain any `.env`. So it never adds to a cluster that the environment already
 * configures, never names a machine for commands, and never sets anything else of Deputy.
 */
const readDotenv = (): Record<string, string> => {
  let text: string
  try {
    text = readFileSync('.env', 'utf8')
  } catch {
    return {}
  }
  const hasCluster = Object.keys(process.env).some(name => name.startsWith('PROXMOX_'))
  const entries = Object.entries(parseEnv(text)).filter(
    ([name]) => !name.startsWith('CLUSTER_') && !(hasCluster && name.startsWith('PROXMOX_')),
  )
  return Object.fromEntries(entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
}
