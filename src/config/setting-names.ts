/**
 * Settings that people put into the environment of an MCP client. The daemon has the environment of whoever
 * started it, so a front tells which of them it has (names, never values) and the daemon says what it misses.
 */
const SETTING =
  /^(PROXMOX_|CLUSTER_|CALLBACK_|DEFAULT_(VM_TEMPLATE|TIMEOUT|CPU|MEMORY|DISK)$|HEARTBEAT_THRESHOLD_SECONDS$|CLEANUP_INTERVAL_SECONDS$|MCP_ALLOWED_HOSTS$|ANTHROPIC_API_KEY$|CLAUDE_CODE_OAUTH_TOKEN$)/

const MOST = 50

export const settingNames = (env: Readonly<Record<string, string | undefined>>): string[] =>
  Object.keys(env)
    .filter(name => SETTING.test(name) && /^[A-Z0-9_]+$/.test(name) && env[name] !== '')
    .sort()
    .slice(0, MOST)

/** What a front has and the daemon has not, as a sentence; undefined when nothing is missing. */
export const missingSettings = (
  front: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): string | undefined => {
  const missing = front.filter(name => SETTING.test(name) && (env[name] ?? '') === '')
  if (missing.length === 0) return undefined
  return `This client sets ${missing.slice(0, 8).join(', ')}, but the daemon was started without: the user should run 'deputy daemon restart' where they are set.`
}
