import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { type Home, ownDirectories } from '../config/home.ts'
import { loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { toAppError } from '../jobs/errors.ts'
import type { SessionToolsets } from '../mcp/mcp-service.ts'
import { createClusterToolset } from '../mcp/tools/cluster/cluster-toolset.ts'
import { jobsToolset } from '../mcp/tools/jobs/jobs-toolset.ts'
import { type Approvals, createApprovals } from '../mcp/tools/proxmox/policy/pending-approvals.ts'
import type { Toolset } from '../mcp/toolset.ts'
import type { ClusterOverview } from '../proxmox/cluster-overview.ts'
import type { Environment } from '../proxmox/env-variables.ts'
import { isConfigured, parseSettings } from '../proxmox/proxmox-settings.ts'
import type { DaemonCluster } from './open-cluster.ts'

export interface ToolsetsOptions {
  readonly home: Home
  readonly config: Config
  readonly env: NodeJS.ProcessEnv
  readonly log: Logger
  readonly cluster: DaemonCluster
}

export interface Toolsets {
  readonly available: Toolset[]
  /** Problems with the settings of a toolset, as sentences for the MCP client. */
  readonly notes: string[]
  /** Toolsets for a client with Proxmox or cluster settings of its own; undefined when the daemon's are the same. */
  forSession(environment: Environment): Promise<SessionToolsets> | undefined
  /** Calls to any cluster that wait for the user's approval. */
  readonly approvals: Pick<Approvals, 'list' | 'approve' | 'refuse'>
  /** Reads the nodes and guests of the daemon's cluster; absent without one. */
  readonly overview?: ReadOverview | undefined
  close(): Promise<void>
}

type ReadOverview = (signal: AbortSignal) => Promise<ClusterOverview>

const NOT_CONFIGURED =
  'Proxmox VE is not configured: set PROXMOX_HOST and an API token in the environment of the daemon.'
/** Each holds connections to a cluster, for as long as the daemon runs. */
const MAX_ENVIRONMENTS = 16

interface CreatedToolsets extends SessionToolsets {
  readonly available: Toolset[]
  readonly notes: string[]
  readonly approvals?: Approvals
  readonly overview?: ReadOverview
  close(): Promise<void>
}

/** Creates every toolset; a client chooses among them when it connects. */
export const createToolsets = async (options: ToolsetsOptions): Promise<Toolsets> => {
  const { home, env, log } = options
  const own = await createSessionToolsets(options)
  const sessions = new Map<string, Promise<CreatedToolsets>>()
  const approvals: Approvals[] = own.approvals ? [own.approvals] : []

  /** The variables of the client with this prefix; undefined when the daemon has the same. */
  const ownVariables = (environment: Environment, prefix: string): Environment | undefined => {
    const entries = Object.entries(environment).filter(([name]) => name.startsWith(prefix))
    return entries.every(([name, value]) => env[name] === value) ? undefined : Object.fromEntries(entries)
  }

  const createSession = async (
    proxmox: Environment | undefined,
    nodes: Environment | undefined,
  ): Promise<CreatedToolsets> => {
    const client = nodes === undefined ? undefined : options.cluster.forClient(nodes)
    const cluster = createClusterToolset(client ?? options.cluster)
    const join = client && { join: client.join }
    const replace = (toolset: Toolset): Toolset => (toolset.name === cluster.name ? cluster : toolset)
    if (proxmox === undefined)
      return { available: own.available.map(replace), notes: own.notes, close: async () => {}, ...join }
    const others = Object.entries(env).filter(([name]) => !name.startsWith('PROXMOX_'))
    const session = { ...Object.fromEntries(others), ...proxmox }
    const created = await createSessionToolsets({
      ...options,
      env: session,
      config: loadConfig(home, session).config,
    })
    if (created.approvals) approvals.push(created.approvals)
    return { ...created, available: created.available.map(replace), ...join }
  }

  return {
    available: own.available,
    notes: own.notes,
    approvals: mergeApprovals(approvals),
    overview: own.overview,
    forSession: environment => {
      const proxmox = isConfigured(environment) ? ownVariables(environment, 'PROXMOX_') : undefined
      const nodes = ownVariables(environment, 'CLUSTER_')
      if (proxmox === undefined && nodes === undefined) return undefined
      const key = createHash('sha256')
        .update(JSON.stringify(Object.entries(environment).sort()))
        .digest('hex')
      const known = sessions.get(key)
      if (known !== undefined) return known
      if (sessions.size >= MAX_ENVIRONMENTS)
        return Promise.resolve({ available: own.available, notes: [TOO_MANY] })
      const created = createSession(proxmox, nodes).catch((error: unknown) => {
        const { message } = toAppError(error)
        log.error({ err: error }, 'cannot use the settings of a client')
        return { ...own, notes: [`The settings of this client are not used: ${message}`] }
      })
      sessions.set(key, created)
      return created
    },
    close: async () => {
      await own.close()
      for (const session of sessions.values()) await (await session).close()
    },
  }
}

const TOO_MANY =
  'Too many clients have had settings of their own, so those of the daemon count. The user should run: deputy daemon restart'

const mergeApprovals = (all: readonly Approvals[]): Toolsets['approvals'] => {
  const ownerOf = (id: string): Approvals =>
    all.find(approvals => approvals.list().some(plan => plan.id === id)) ?? createApprovals()
  return {
    list: () => all.flatMap(approvals => approvals.list()),
    approve: id => ownerOf(id).approve(id),
    refuse: id => ownerOf(id).refuse(id),
  }
}

const createSessionToolsets = async (options: ToolsetsOptions): Promise<CreatedToolsets> => {
  const own = [jobsToolset, createClusterToolset(options.cluster)]
  const nothing: CreatedToolsets = { available: own, notes: [], close: async () => {} }
  if (!isConfigured(options.env)) return { ...nothing, notes: [NOT_CONFIGURED] }
  try {
    const { toolsets, ...rest } = await proxmox(options)
    return { available: [...own, ...toolsets], notes: [], ...rest }
  } catch (error) {
    // An invalid cluster setting must not disable the job tools.
    const { message, hint } = toAppError(error)
    options.log.error({ err: error }, 'cannot start the Proxmox tools')
    return { ...nothing, notes: [`The Proxmox tools are off: ${message}${hint ? ` ${hint}` : ''}`] }
  }
}

/** Imported only when a cluster is configured: the table has a hundred tools. */
const proxmox = async ({ home, config, env, log }: ToolsetsOptions) => {
  const [{ createProxmox }, { readClusterOverview }, { createProxmoxToolsets }] = await Promise.all([
    import('../proxmox/proxmox-client.ts'),
    import('../proxmox/cluster-overview.ts'),
    import('../mcp/tools/proxmox/create-proxmox-toolsets.ts'),
  ])
  const client = createProxmox(parseSettings(env, home.trustedHosts), {
    logger: log,
    cacheDir: join(home.cacheDir, 'proxmox'),
  })
  const { toolsets, approvals } = createProxmoxToolsets({
    api: client,
    config: config.proxmoxTools,
    env,
    stateDir: home.stateDir,
    ownDirs: ownDirectories(home),
    own: ownMachines(config.proxmox),
  })
  const overview: ReadOverview = signal => readClusterOverview(client, signal)
  return { toolsets, approvals, overview, close: () => client.close() }
}

/** How the VMs of jobs are recognised: by their VMIDs and their tag. */
const ownMachines = ({ enabled, firstVmid, lastVmid }: Config['proxmox']) => ({
  vmids: enabled ? [`${firstVmid}-${lastVmid}`] : [],
  tags: ['deputy'],
})
