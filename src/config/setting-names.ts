/**
 * Settings that people put into the environment of an MCP client. The daemon has the environment of the process that
 * started it, which may lack them. So the client sends the names that it has (never the values), and the daemon
 * reports which ones are missing.
 */
const SETTING =
  /^(PROXMOX_|CLUSTER_|CALLBACK_|DEFAULT_(VM_TEMPLATE|TIMEOUT|CPU|MEMORY|DISK)$|HEARTBEAT_THRESHOLD_SECONDS$|CLEANUP_INTERVAL_SECONDS$|MCP_ALLOWED_HOSTS$|ANTHROPIC_API_KEY$|CLAUDE_CODE_OAUTH_TOKEN$)/

const MAX_NAMES = 50

export const settingNames = (env: Readonly<Record<string, string | undefined>>): string[] =>
  Object.keys(env)
    .filter(name => SETTING.test(name) && /^[A-Z0-9_]+$/.test(name) && env[name] !== '')
    .sort()
    .slice(0, MAX_NAMES)

/** Sentences about the settings that the client has and the daemon lacks. */
export const missingSettings = (
  front: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): string[] => {
  const missing = front.filter(name => SETTING.test(name) && (env[name] ?? '') === '')
  // A session uses its own settings of Proxmox and of the cluster.
  const shared = missing.filter(name => !/^(PROXMOX|CLUSTER)_/.test(name))
  const restart = "The user should run 'deputy daemon restart' in a shell that sets them."
  return [
    ...(shared.length > 0
      ? [
          `This client sets ${shared.slice(0, 8).join(', ')}, but the daemon was started without them. ${restart}`,
        ]
      : []),
    ...(missing.includes('PROXMOX_HOST')
      ? [`Jobs cannot run in VMs: the daemon was started without PROXMOX_HOST. ${restart}`]
      : []),
  ]
}
