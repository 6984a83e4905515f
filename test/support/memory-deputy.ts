import { EventEmitter, once } from 'node:events'
import type {
  Deputy,
  JobChange,
  JobResult,
  JobSummary,
  JobView,
  OutputPage,
  OutputPiece,
} from '../../src/engine/deputy.ts'
import { AppError } from '../../src/jobs/errors.ts'
import { newId } from '../../src/jobs/ids.ts'
import { type Manifest, parseManifest } from '../../src/jobs/manifest.ts'
import { isTerminal, STATES, type TerminalState } from '../../src/jobs/states.ts'

/**
 * A Deputy that keeps jobs in memory and runs nothing: tests of the fronts play the machine themselves with
 * `start`, `print` and `finish`.
 */
export interface MemoryDeputy extends Deputy {
  start(id: string, progress?: string): void
  print(id: string, text: string | Uint8Array, stream?: 'stdout' | 'stderr'): void
  finish(
    id: string,
    end: { status: TerminalState; exitCode?: number; artifacts?: Record<string, string | Buffer> },
  ): void
}

const NOTHING = { success: 0, failed: 0, timeout: 0, cancelled: 0 }

interface Entry {
  view: JobView
  manifest: Manifest
  pieces: OutputPiece[]
  artifacts: Map<string, Buffer>
}

export const createMemoryDeputy = (): MemoryDeputy => {
  const jobs = new Map<string, Entry>()
  const keys = new Map<string, string>()
  const changes = new EventEmitter().setMaxListeners(0)

  const find = (id: string): Entry => {
    const entry = jobs.get(id)
    if (entry === undefined)
      throw new AppError('not_found', `No job '${id}'.`, {
        hint: 'list_jobs shows the ones there are.',
      })
    return entry
  }
  const change = (id: string, view: Partial<JobView>, kind: JobChange['kind'] = 'state') => {
    const entry = find(id)
    entry.view = { ...entry.view, ...view }
    changes.emit('change', { jobId: id, kind } satisfies JobChange)
  }
  const until = async (ready: () => boolean, timeoutMs: number, signal: AbortSignal) => {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
    while (!ready() && !limit.aborted) await once(changes, 'change', { signal: limit }).catch(() => {})
    signal.throwIfAborted()
  }
  const page = (entry: Entry, cursor: number, maxBytes: number): OutputPage => {
    const end = entry.view.output_bytes
    const from = cursor < 0 ? Math.max(0, end + cursor) : cursor
    const to = Math.min(end, from + maxBytes)
    const pieces = entry.pieces.flatMap(piece => {
      if (!('data' in piece)) return []
      const data = piece.data.subarray(Math.max(0, from - piece.offset), Math.max(0, to - piece.offset))
      return data.length > 0 ? [{ ...piece, data, offset: Math.max(from, piece.offset) }] : []
    })
    const done = isTerminal(entry.view.status) && to === end
    return { job_id: entry.view.job_id, status: entry.view.status, pieces, next_cursor: to, done }
  }
  const result = (entry: Entry, maxBytes: number): JobResult => {
    const bytes = Buffer.concat(entry.pieces.flatMap(piece => ('data' in piece ? [piece.data] : [])))
    const half = Math.floor(maxBytes / 2)
    const cut = bytes.length > maxBytes
    return {
      ...entry.view,
      output: cut
        ? `${bytes.subarray(0, half)}\n[…]\n${bytes.subarray(bytes.length - half)}`
        : bytes.toString(),
      truncated: cut ? { skipped_bytes: bytes.length - 2 * half, head_bytes: half, tail_bytes: half } : null,
      artifacts: [...entry.artifacts].map(([path, data]) => ({ path, size: data.length, sha256: 'x' })),
      skipped_artifacts: [],
      patch: null,
      usage: null,
      isolation: ['none'],
      limits_hit: [],
      resources: null,
      executed_on: null,
    }
  }
  const refuse = (): Promise<never> =>
    Promise.reject(new AppError('unsupported', 'The test deputy has none.'))

  return {
    submit: async (input, origin) => {
      const manifest = parseManifest(input)
      const known = manifest.idempotency_key && keys.get(manifest.idempotency_key)
      if (known) return { ...find(known).view, deduplicated: true }
      const id = newId()
      if (manifest.idempotency_key) keys.set(manifest.idempotency_key, id)
      jobs.set(id, { view: newView(id, manifest, origin), manifest, pieces: [], artifacts: new Map() })
      change(id, {})
      return find(id).view
    },
    get: async id => find(id).view,
    manifest: async id => find(id).manifest,
    wait: async (id, { since, timeoutMs, signal }) => {
      const ready = () =>
        since === undefined ? isTerminal(find(id).view.status) : find(id).view.status !== since
      await until(ready, timeoutMs, signal)
      return find(id).view
    },
    list: async ({ status, label, limit = 20, cursor }) => {
      const [name, value] = (label ?? '').split('=')
      const all = [...jobs.values()]
        .map(entry => entry.view)
        .filter(view => status === undefined || view.status === status)
        .filter(
          view => !name || (name in view.labels && (value === undefined || view.labels[name] === value)),
        )
        .reverse()
      const from = cursor === undefined ? 0 : Number(cursor)
      const more = from + limit < all.length
      return {
        jobs: all.slice(from, from + limit).map(summary),
        next_cursor: more ? String(from + limit) : null,
      }
    },
    result: async (id, { maxBytes = 65_536 }) => result(find(id), maxBytes),
    output: async (id, { cursor = 0, maxBytes = 65_536, waitMs = 0, signal }) => {
      const entry = find(id)
      const ready = () => entry.view.output_bytes > cursor || isTerminal(entry.view.status)
      if (waitMs > 0 && cursor >= 0) await until(ready, waitMs, signal)
      return page(entry, cursor, maxBytes)
    },
    follow: async function* (id, { cursor = 0, signal }) {
      for (let at = cursor; ; ) {
        const next = page(find(id), at, 65_536)
        if (next.pieces.length > 0 || next.done) yield next
        if (next.done) return
        at = next.next_cursor
        await once(changes, 'change', { signal })
      }
    },
    events: async () => [],
    followEvents: async function* () {},
    cancel: async id => {
      const entry = find(id)
      if (isTerminal(entry.view.status))
        throw new AppError('conflict', `Job ${id} is already finished: ${entry.view.status}.`)
      change(id, { status: 'cancelled', cancel_requested: true, completed_at: new Date().toISOString() })
      return find(id).view
    },
    delete: async id => {
      if (!isTerminal(find(id).view.status)) throw new AppError('conflict', `Job ${id} is not finished.`)
      jobs.delete(id)
    },
    artifacts: async id => result(find(id), 0).artifacts,
    openArtifact: async (id, path) => {
      const data = find(id).artifacts.get(path)
      if (data === undefined) throw new AppError('not_found', `Job ${id} has no artifact '${path}'.`)
      return {
        path,
        sha256: 'x',
        size: data.length,
        read: async function* (range) {
          yield range ? data.subarray(range.start, range.end + 1) : data
        },
      }
    },
    openPatch: refuse,
    history: async () => [],
    review: refuse,
    markViewed: refuse,
    applyChanges: refuse,
    rejectChanges: refuse,
    handBack: refuse,
    putBlob: refuse,
    openSession: refuse,
    machines: async () => [],
    daemons: async () => [],
    drainDaemon: async () => {},
    destroyMachine: refuse,
    doctor: async () => [],
    probe: async () => [],
    onChange: listener => {
      changes.on('change', listener)
      return () => changes.off('change', listener)
    },
    stats: async () => {
      const count = Object.fromEntries(STATES.map(state => [state, 0])) as Record<
        (typeof STATES)[number],
        number
      >
      for (const { view } of jobs.values()) count[view.status] += 1
      return { jobs: count, machines: {}, oldest_pending_seconds: 0, last_day: NOTHING }
    },
    start: (id, progress) =>
      change(id, {
        status: 'running',
        queue_position: null,
        started_at: new Date().toISOString(),
        progress: progress ?? null,
      }),
    print: (id, text, stream = 'stdout') => {
      const entry = find(id)
      const data = typeof text === 'string' ? new TextEncoder().encode(text) : text
      entry.pieces.push({ stream, offset: entry.view.output_bytes, data, at: Date.now() })
      change(id, { output_bytes: entry.view.output_bytes + data.length }, 'output')
    },
    finish: (id, { status, exitCode = 0, artifacts = {} }) => {
      const entry = find(id)
      for (const [path, data] of Object.entries(artifacts)) entry.artifacts.set(path, Buffer.from(data))
      change(id, {
        status,
        exit_code: exitCode,
        queue_position: null,
        completed_at: new Date().toISOString(),
        duration_seconds: 1.5,
      })
    },
  }
}

const newView = (id: string, manifest: ReturnType<typeof parseManifest>, origin: string): JobView => ({
  job_id: id,
  status: 'pending',
  task: manifest.task.slice(0, 200),
  agent: manifest.agentType,
  runtime: manifest.runtime,
  machine_id: null,
  parent_id: null,
  origin,
  progress: null,
  queue_position: 1,
  created_at: new Date().toISOString(),
  started_at: null,
  completed_at: null,
  duration_seconds: null,
  timeout_seconds: manifest.timeout ?? 3600,
  attempts: 1,
  cancel_requested: false,
  phases: {},
  exit_code: null,
  signal: null,
  error: null,
  output_bytes: 0,
  labels: manifest.labels ?? {},
})

const summary = (view: JobView): JobSummary => ({
  job_id: view.job_id,
  status: view.status,
  task: view.task,
  agent: view.agent,
  runtime: view.runtime,
  created_at: view.created_at,
  started_at: view.started_at,
  duration_seconds: view.duration_seconds,
  exit_code: view.exit_code,
  labels: view.labels,
})
