/**
 * Settings that people put into the environment of an MCP client. The daemon has the environment of the process that
 * started it, which may lack them. So the client sends the names that it has (never the values), and the daemon
 * reports which ones are missing.
 */
const SETTING =
  /^(PROXMOX_|CLUSTER_|CALLBACK_|DEFAULT_(VM_TEMPLATE|TIMEOUT|CPU|MEMORY|DISK)$|HEARTBEAT_THRESHOLD_SECONDS$|CLEANUP_INTERVAL_SECONDS$|MCP_ALLOWED_HOSTS$|ANTHROPIC_API_KEY$|CLAUDE_CODE_OAUTH_TOKEN$)/

const MOST = 50

export const settingNames = (env: Readonly<Record<string, string | undefined>>): string[] =>
  Object.keys(env)
    .filter(name => SETTING.test(name) && /^[A-Z0-9_]+$/.test(name) && env[name] !== '')
    .sort()
    .slice(0, MOST)

/** A sentence about the settings that the client has and the daemon lacks; undefined when none is missing. */
export const missingSettings = (
  front: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): string | undefined => {
  const missing = front.filter(name => SETTING.test(name) && (env[name] ?? '') === '')
  if (missing.length === 0) return undefined
  return `This client sets ${missing.slice(0, 8).join(', ')}, but the daemon was started without them. The user should run 'deputy daemon restart' in a shell that sets them.`
}
