import { join } from 'node:path'
import type { Logger } from 'pino'
import { type Home, ownDirectories } from '../config/home.ts'
import type { Config } from '../config/schema.ts'
import { toAppError } from '../jobs/errors.ts'
import { type ClusterTools, createClusterToolset } from '../mcp/tools/cluster/cluster-toolset.ts'
import { jobsToolset } from '../mcp/tools/jobs/jobs-toolset.ts'
import type { Approvals } from '../mcp/tools/proxmox/policy/pending-approvals.ts'
import type { Toolset } from '../mcp/toolset.ts'
import { isConfigured, parseSettings } from '../proxmox/proxmox-settings.ts'

export interface ToolsetsOptions {
  readonly home: Home
  readonly config: Config
  readonly env: NodeJS.ProcessEnv
  readonly log: Logger
  readonly cluster: ClusterTools
}

export interface Toolsets {
  readonly available: Toolset[]
  /** Problems with the settings of a toolset, as sentences for the MCP client. */
  readonly notes: string[]
  /** Calls to the cluster that wait for the user's approval; absent without a cluster. */
  readonly approvals?: Approvals
  close(): Promise<void>
}

const NOT_CONFIGURED =
  'Proxmox VE is not configured: set PROXMOX_HOST and an API token in the environment of the daemon.'

/** Creates every toolset; a client chooses among them when it connects. */
export const createToolsets = async (options: ToolsetsOptions): Promise<Toolsets> => {
  const own = [jobsToolset, createClusterToolset(options.cluster)]
  const nothing: Toolsets = { available: own, notes: [], close: async () => {} }
  if (!isConfigured(options.env)) return { ...nothing, notes: [NOT_CONFIGURED] }
  try {
    const { toolsets, approvals, close } = await proxmox(options)
    return { available: [...own, ...toolsets], notes: [], approvals, close }
  } catch (error) {
    // An invalid cluster setting must not disable the job tools.
    const { message, hint } = toAppError(error)
    options.log.error({ err: error }, 'cannot start the Proxmox tools')
    return { ...nothing, notes: [`The Proxmox tools are off: ${message}${hint ? ` ${hint}` : ''}`] }
  }
}

/** Imported only when a cluster is configured: the table has a hundred tools. */
const proxmox = async ({ home, config, env, log }: ToolsetsOptions) => {
  const [{ createProxmox }, { createProxmoxToolsets }] = await Promise.all([
    import('../proxmox/proxmox-client.ts'),
    import('../mcp/tools/proxmox/create-toolsets.ts'),
  ])
  const client = createProxmox(parseSettings(env), { logger: log, cacheDir: join(home.cacheDir, 'proxmox') })
  const { toolsets, approvals } = createProxmoxToolsets({
    api: client,
    config: config.proxmoxTools,
    env,
    stateDir: home.stateDir,
    ownDirs: ownDirectories(home),
    own: ownMachines(config.proxmox),
  })
  return { toolsets, approvals, close: () => client.close() }
}

/** How the VMs of jobs are recognised: by their VMIDs and their tag. */
const ownMachines = ({ enabled, firstVmid, lastVmid }: Config['proxmox']) => ({
  vmids: enabled ? [`${firstVmid}-${lastVmid}`] : [],
  tags: ['deputy'],
})
