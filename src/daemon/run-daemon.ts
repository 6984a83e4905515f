import { setMaxListeners } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import { removeDaemonPid, writeDaemonPid } from '../client/daemon-pid.ts'
import { type Home, ownDirectories } from '../config/home.ts'
import { type LoadedConfig, loadConfig } from '../config/load.ts'
import { openTemplates } from '../config/manifest-templates.ts'
import { requireProcessLimits } from '../config/process-limits.ts'
import { createSecrets } from '../config/resolve-secrets.ts'
import { missingSettings } from '../config/setting-names.ts'
import type { Deputy } from '../engine/deputy.ts'
import { createEngine } from '../engine/engine.ts'
import { pause } from '../engine/pause.ts'
import { addToWorkspace } from '../files/add-to-workspace.ts'
import { applyPatch } from '../files/apply-patch.ts'
import { createDirectoryGuard } from '../files/directory-guard.ts'
import { packDirectory } from '../files/pack-directory.ts'
import { createControlApp } from '../http/app.ts'
import type { ClusterFront } from '../http/deps.ts'
import { type Listener, type LoopbackListener, listenLoopback, listenUnix } from '../http/listen.ts'
import { createSessionTickets, type SessionTickets } from '../http/session-tickets.ts'
import { ensureTokens } from '../http/tokens.ts'
import { AppError } from '../jobs/errors.ts'
import { parseSize } from '../jobs/sizes.ts'
import { createMcpService } from '../mcp/mcp-service.ts'
import { observeJobs } from '../observability/job-metrics.ts'
import { createLog } from '../observability/log.ts'
import { createMetrics, type Metrics } from '../observability/metrics.ts'
import { observeProcess } from '../observability/process-metrics.ts'
import { submitRouted } from '../routing/submit-routed.ts'
import { openBallast } from '../store/ballast-file.ts'
import { acquireLock } from '../store/daemon-lock.ts'
import { isLeaseLost } from '../store/postgres-lease.ts'
import { VERSION } from '../version.ts'
import { createHostAccess } from './create-host-access.ts'
import { createProviders } from './create-providers.ts'
import { createToolsets } from './create-toolsets.ts'
import { parseFaultPoint } from './fault-points.ts'
import { guardApprovals } from './guard-approvals.ts'
import { locateProgram } from './locate-program.ts'
import { openCluster } from './open-cluster.ts'
import { openConfiguredStore } from './open-store.ts'
import { settingsChange } from './settings-change.ts'

export interface DaemonOptions {
  readonly home: Home
  readonly env: NodeJS.ProcessEnv
  /** Aborted to stop the daemon, in addition to SIGTERM and SIGINT. */
  readonly signal?: AbortSignal
}

export type DaemonEnd =
  /** The daemon served and was stopped. */
  | 'stopped'
  /** Another daemon holds this home; the caller should connect to it. */
  | 'another'

/** Runs the one process that owns the jobs of a home. Resolves when the daemon has stopped; its jobs keep running. */
export const runDaemon = async ({ home, env, signal }: DaemonOptions): Promise<DaemonEnd> => {
  process.umask(0o077)
  const lock = acquireLock(join(home.stateDir, 'daemon.lock'))
  if (lock === undefined) return 'another'
  try {
    writeDaemonPid(home)
    const loaded = loadConfig(home, env)
    requireProcessLimits(loaded.config.limits)
    const log = createLog(loaded.config.log.level)
    const ending = endSignal(signal)
    await serveAndRejoin({ home, env, log, loaded, signal: ending })
    return 'stopped'
  } finally {
    removeDaemonPid(home)
    lock.release()
  }
}

interface ServeOptions extends DaemonOptions {
  readonly signal: AbortSignal
  readonly log: Logger
  readonly loaded: LoadedConfig
}

/**
 * Serves until the daemon is stopped. When other daemons have fenced it, nothing that it had begun may continue under
 * its next fencing token, so all parts are closed and created again.
 */
const serveAndRejoin = async (options: ServeOptions): Promise<void> => {
  let hasServed = false
  for (;;) {
    try {
      return await serve(options)
    } catch (error) {
      hasServed ||= isLeaseLost(error)
      const mayPass = error instanceof AppError && error.code === 'unavailable' && error.retryable
      if (!hasServed || !mayPass || options.signal.aborted) throw error
      options.log.warn({ err: error }, 'this daemon was fenced; registering again')
      await pause(REJOIN_MS, options.signal)
    }
  }
}

const REJOIN_MS = 1000

const serve = async (options: ServeOptions): Promise<void> => {
  const closers: Closer[] = []
  try {
    await run(options, closer => closers.push(closer))
  } finally {
    // Runs after a failed start too: an engine must never continue without the lock.
    for (const close of closers.reverse())
      await close().catch((error: unknown) => options.log.error({ err: error }, 'shutdown step failed'))
  }
}

type Closer = () => Promise<unknown>

/** Starts all parts and waits for the stop signal. `defer` registers closers, which run in reverse order. */
const run = async (
  { home, env, log, loaded, signal }: ServeOptions,
  defer: (closer: Closer) => void,
): Promise<void> => {
  const { config } = loaded
  let { settings } = loaded
  logWarnings(loaded, env, log)
  const stopping = stopSignal(signal)
  const startedAt = Date.now()
  const ballast = openBallast(join(home.stateDir, 'ballast'))
  const { store, blobs, clock, fleet, shared, failure } = await openConfiguredStore({
    ...{ home, config, log, signal: stopping.signal },
  })
  const secrets = createSecrets(config.secrets, env)
  const metrics = createMetrics()
  observeProcess(metrics, VERSION)
  const hostAccess = createHostAccess(loaded, home.configFile, () => reload())
  const cluster = openCluster({
    ...{ home, config, env, stopping: stopping.signal, hostAccess, owner: shared?.owner },
    onNodesChanged: change => {
      log.info(change, 'a client with nodes of its own connected or left')
      mcp.toolsChanged()
    },
  })
  defer(async () => cluster.cluster.close())
  const onCall = countCallbacks(metrics)
  const providers = await createProviders({
    ...{ home, config, env, blobs, log, onCall, hostAccess },
    cluster: cluster.cluster,
    fleetKey: shared?.key,
  })
  const engine = createEngine({
    ...{ store, blobs, ballast, clock, providers, secrets, config, log },
    ...(fleet && { fleet }),
    batchChild: cluster.child,
    locate: program => locateProgram(program, env.PATH),
    pack: packDirectory,
    addToWorkspace,
    applyPatch,
    checkDirectory: guardDirectories(home, config, env),
    fault: parseFaultPoint(env.DEPUTY_FAULT_POINT),
  })
  defer(engine.close)
  const { deputy } = engine
  let unix: Listener | undefined
  let loopback: LoopbackListener | undefined
  defer(() => Promise.all([unix?.close(), loopback?.close()]))
  defer(observeJobs(metrics, deputy).close)
  const toolsets = await createToolsets({ home, config, env, log, cluster })
  defer(toolsets.close)
  const mcp = createMcpService({
    deputy,
    available: toolsets.available,
    sessionToolsets: toolsets.forSession,
    version: VERSION,
    instructionsContext: settings => ({
      runtimes: engine.readiness(),
      agents: Object.keys(config.agents),
      secrets: secrets.names(),
      notes: [...toolsets.notes, ...missingSettings(settings, env)],
    }),
    onerror: error => log.error({ err: error }, 'MCP tool failed'),
    onrefused: error => log.debug({ err: error }, 'MCP'),
  })
  defer(mcp.close)
  const reload = () => {
    const next = loadConfig(home, env)
    const { restart, ...now } = settingsChange(settings, next.settings)
    settings = now.settings
    hostAccess.allowed = next.config.host.allow
    const change = { ...cluster.update(next.config.cluster), restart }
    log.info({ ...change, hostAllowed: hostAccess.allowed }, 'reloaded the nodes')
    mcp.toolsChanged()
    void deputy.doctor(stopping.signal)
    return change
  }
  const sessions = createSessionTickets(config.http.allowedHosts)
  defer(async () => sessions.close())
  const app = createControlApp({
    deputy,
    sessions,
    templates: openTemplates(join(home.configDir, 'templates')),
    daemon: {
      ...{ version: VERSION, socket: home.socket, home: home.stateDir, startedAt },
      url: () => loopback?.url ?? null,
      stop: stopping.stop,
      reload,
    },
    cluster: createClusterFront(cluster, deputy),
    approvals: guardApprovals(toolsets.approvals, deputy),
    proxmox: toolsets.overview,
    tokens: await ensureTokens(home.stateDir),
    allowedHosts: config.http.allowedHosts,
    mcp: (request, access) => mcp.http.fetch(request, access),
    explainConfig: () => settings,
    log,
    metrics,
    closing: stopping.signal,
    maxUpload: parseSize(config.limits.upload),
  })

  await engine.start()
  if (config.http.enabled) loopback = await listenTcp(app, config.http, log, sessions)
  // Open the socket last, so that a client that can connect finds a daemon that is ready.
  unix = await listenUnix(app, home.socket, {
    onUpgrade: (...connection) => {
      if (!sessions.upgrade('socket', ...connection)) mcp.upgrade(...connection)
    },
    onSocketDeleted: error => logDeletedSocket(log, home.socket, error),
  })
  log.info({ pid: process.pid, version: VERSION, socket: home.socket, url: loopback?.url }, 'ready')

  try {
    await Promise.race([stopping.stopped, failure])
  } finally {
    // Ends the open requests after a failure too.
    stopping.stop()
  }
  log.info('stopping; jobs keep running')
}

const logWarnings = ({ warnings }: LoadedConfig, env: NodeJS.ProcessEnv, log: Logger): void => {
  for (const warning of warnings) log.warn(warning)
  if (env.PROXMOX_ADMIN_PATH)
    log.info('PROXMOX_ADMIN_PATH is no longer needed: jobs connect to the cluster directly')
}

const countCallbacks = (metrics: Metrics) => {
  const callbacks = metrics.counter('deputy_callbacks_total', 'Callbacks from machines by kind and status.')
  return (kind: string, status: number): void => callbacks.add({ kind, status: String(status) })
}

const createClusterFront = (cluster: ReturnType<typeof openCluster>, deputy: Deputy): ClusterFront => ({
  status: signal => cluster.status(deputy, signal),
  submit: (command, origin, options) => submitRouted(cluster, deputy, command, origin, options),
})

const guardDirectories = (home: Home, { workspaces }: LoadedConfig['config'], env: NodeJS.ProcessEnv) =>
  createDirectoryGuard({
    own: ownDirectories(home),
    allow: workspaces.allow,
    homes: [homedir(), ...(env.HOME ? [env.HOME] : [])],
    configFile: home.configFile,
  })

const logDeletedSocket = (log: Logger, socket: string, error: unknown): void =>
  error === undefined
    ? log.warn({ socket }, 'the socket was deleted; created it again')
    : log.error({ socket, err: error }, 'the socket was deleted and cannot be created again')

type HttpSettings = LoadedConfig['config']['http']

/** The TCP listener is optional: without it, clients on this computer use the Unix socket. */
const listenTcp = async (
  app: Parameters<typeof listenLoopback>[0],
  { host, port }: HttpSettings,
  log: Logger,
  sessions: SessionTickets,
): Promise<LoopbackListener | undefined> => {
  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (!sessions.upgrade('tcp', request, socket, head)) socket.destroy()
  }
  try {
    const listener = await listenLoopback(app, { host, port, onUpgrade })
    if (listener.moved)
      log.warn(
        { wanted: listener.moved.wanted, url: listener.url },
        `the port is ${listener.moved.reason}; using another one`,
      )
    return listener
  } catch (error) {
    log.error({ err: error, host, port }, 'cannot listen on TCP; the Unix socket works')
    return undefined
  }
}

/** Aborted by the signals that end the process, and by the caller. */
const endSignal = (outer: AbortSignal | undefined): AbortSignal => {
  const controller = new AbortController()
  const end = (): void => controller.abort()
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(name, end)
  outer?.addEventListener('abort', end, { once: true })
  if (outer?.aborted) end()
  return controller.signal
}

const stopSignal = (outer: AbortSignal) => {
  const controller = new AbortController()
  // Every waiting request and every stream adds a listener.
  setMaxListeners(0, controller.signal)
  const stop = (): void => controller.abort()
  const stopped = new Promise<void>(resolve =>
    controller.signal.addEventListener('abort', () => resolve(), { once: true }),
  )
  outer.addEventListener('abort', stop, { once: true })
  if (outer.aborted) stop()
  return { stop, stopped, signal: controller.signal }
}
