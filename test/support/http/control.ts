import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { pino } from 'pino'
import { resolveHome } from '../../../src/config/home.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { openTemplates } from '../../../src/config/manifest-templates.ts'
import { createSecrets } from '../../../src/config/resolve-secrets.ts'
import type { Deputy } from '../../../src/engine/deputy.ts'
import { createEngine } from '../../../src/engine/engine.ts'
import { addToWorkspace } from '../../../src/files/add-to-workspace.ts'
import { applyPatch } from '../../../src/files/apply-patch.ts'
import { createControlApp } from '../../../src/http/app.ts'
import type { ControlDeps } from '../../../src/http/deps.ts'
import { listenLoopback, listenUnix } from '../../../src/http/listen.ts'
import { createSessionTickets } from '../../../src/http/session-tickets.ts'
import { ensureTokens } from '../../../src/http/tokens.ts'
import { observeJobs } from '../../../src/observability/job-metrics.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { createBlobs } from '../../../src/store/blob-store.ts'
import { openStore } from '../../../src/store/sqlite-store.ts'
import { createScriptedProvider, type ScriptedProvider } from './scripted-provider.ts'
import { type Answer, type Asked, send } from './send.ts'

export type Control = Awaited<ReturnType<typeof startControl>>

export interface ControlOptions extends Partial<Pick<ControlDeps, 'mcp' | 'allowedHosts' | 'maxUpload'>> {
  readonly provider?: ScriptedProvider
  /** Lets a test listen in on what the app asks of the engine. */
  readonly wrap?: (deputy: Deputy) => Deputy
}

/** The real engine, store and listeners of a daemon, in this process and in a directory of their own. */
export const startControl = async (options: ControlOptions = {}) => {
  const { provider = createScriptedProvider(), wrap = deputy => deputy, ...deps } = options
  const directory = await mkdtemp(join(tmpdir(), 'deputy-http-'))
  const home = resolveHome({ DEPUTY_HOME: directory })
  const store = openStore(join(home.stateDir, 'deputy.db'))
  const blobs = createBlobs(join(home.stateDir, 'blobs'), store)
  const { config, settings } = loadConfig(home, {})
  const engine = createEngine({
    store,
    blobs,
    providers: [provider],
    batchChild: async () => ({}),
    clock: { now: () => Date.now(), monotonic: () => performance.now() },
    secrets: createSecrets({}, {}),
    config,
    log: pino({ level: 'silent' }),
    locate: () => undefined,
    pack: async function* () {},
    addToWorkspace,
    applyPatch,
    checkDirectory: async path => path,
  })
  await engine.start()
  const { deputy } = engine
  const tokens = await ensureTokens(home.stateDir)
  const metrics = createMetrics()
  const jobMetrics = observeJobs(metrics, deputy)
  const closing = new AbortController()
  const errors: object[] = []
  let stopped = false
  let url: string | null = null
  const templates = openTemplates(join(home.configDir, 'templates'))
  const app = createControlApp({
    sessions: createSessionTickets([]),
    templates,
    deputy: wrap(deputy),
    daemon: {
      version: '1.2.3',
      socket: home.socket,
      home: directory,
      startedAt: Date.now(),
      url: () => url,
      reload: () => ({ added: [], removed: [], changed: [], restart: [] }),
      stop: () => {
        stopped = true
      },
    },
    tokens,
    metrics,
    explainConfig: () => settings,
    log: { error: details => errors.push(details), warn: () => {} },
    closing: closing.signal,
    ...deps,
  })
  const unix = await listenUnix(app, home.socket)
  const tcp = await listenLoopback(app, { host: '127.0.0.1', port: 0 })
  url = tcp.url

  return {
    app,
    deputy,
    store,
    provider,
    tokens,
    home,
    templates,
    metrics,
    closing,
    /** Defects that were logged. */
    errors,
    url: tcp.url,
    port: tcp.port,
    wasStopped: () => stopped,
    socket: (asked: Asked | string): Promise<Answer> => send({ socketPath: home.socket }, asked),
    tcp: (asked: Asked | string): Promise<Answer> => send({ port: tcp.port }, asked),
    /** Submits and waits until the command has started. */
    async job(manifest: object = {}) {
      const { job_id } = await deputy.submit({ task: 'play', ...manifest }, 'test')
      return { id: job_id, playing: await provider.started(job_id) }
    },
    async finished(artifacts: Record<string, string | Buffer> = {}, text = '') {
      const { id, playing } = await this.job()
      if (text !== '') await playing.print(text)
      const refs = await Promise.all(
        Object.entries(artifacts).map(async ([path, content]) => ({
          path,
          ...(await blobs.put(chunksOf(content), 1e9, id)),
        })),
      )
      playing.exit(0, refs)
      await deputy.wait(id, { timeoutMs: 10_000, signal: closing.signal })
      // Its last event tells that the machine is gone.
      const deadline = performance.now() + 10_000
      while ((await deputy.machines()).some(machine => machine.job_id === id)) {
        if (performance.now() > deadline) throw new Error('its machine is still there')
        await setTimeout(2)
      }
      return id
    },
    async close() {
      closing.abort()
      await Promise.all([unix.close(1000), tcp.close(1000)])
      await jobMetrics.close()
      await engine.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function* chunksOf(content: string | Buffer): AsyncGenerator<Uint8Array> {
  yield Buffer.from(content)
}
