import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { createConsoleSessions } from '../../../src/http/console-sessions.ts'
import { controlRoutes } from '../../../src/http/routes/all-routes.ts'
import { createSessionTickets } from '../../../src/http/session-tickets.ts'
import {
  artifactListSchema,
  blobSchema,
  daemonSchema,
  doctorSchema,
  errorSchema,
  eventListSchema,
  jobPageSchema,
  jobSchema,
  machineListSchema,
  outputPageSchema,
  readySchema,
  resultSchema,
  settingsSchema,
} from '../../../src/http/views.ts'
import { newId } from '../../../src/jobs/ids.ts'
import { type Control, startControl } from '../../support/http/control.ts'
import { createScriptedProvider } from '../../support/http/scripted-provider.ts'

let control: Control
beforeAll(async () => {
  control = await startControl({ mcp: () => new Response() })
})
afterAll(() => control.close())

describe('health', () => {
  it('is reported by /livez and /readyz', async () => {
    expect((await control.socket('/livez')).json()).toEqual({ status: 'ok' })
    const ready = await control.socket('/readyz')
    expect(ready.status).toBe(200)
    expect(ready.json()).toMatchObject({
      ready: true,
      store: { ready: true },
      runtimes: [{ runtime: 'sandbox', ready: true }],
    })
  })

  it('is bad when no runtime is ready, or the store does not answer', async () => {
    const other = await startControl({ provider: createScriptedProvider({ ready: false }) })
    try {
      const answer = await other.socket('/readyz')
      expect([answer.status, answer.json()]).toMatchObject([503, { ready: false, store: { ready: true } }])
      vi.spyOn(other.store, 'oldestPending').mockRejectedValue(new Error('disk I/O error'))
      expect((await other.socket('/readyz')).json()).toMatchObject({
        store: { ready: false, message: 'disk I/O error' },
      })
      expect((await other.socket('/livez')).status).toBe(200)
    } finally {
      vi.restoreAllMocks()
      await other.close()
    }
  })

  it('checks the runtimes once for many probes', async () => {
    const provider = createScriptedProvider()
    const check = vi.spyOn(provider, 'check')
    const other = await startControl({ provider })
    try {
      await Promise.all(Array.from({ length: 20 }, () => other.socket('/readyz')))
      expect(check.mock.calls.length).toBeLessThanOrEqual(2)
    } finally {
      await other.close()
    }
  })
})

describe('the daemon', () => {
  it('describes itself', async () => {
    const { id, playing } = await control.job()
    expect((await control.socket('/api/daemon')).json()).toMatchObject({
      pid: process.pid,
      version: '1.2.3',
      socket: control.home.socket,
      url: control.url,
      idle: false,
      jobs: { running: 1 },
    })
    playing.exit(0)
    await control.socket(`/api/jobs/${id}?wait_seconds=20`)
    expect((await control.socket('/api/daemon')).json()).toMatchObject({ idle: true })
  })

  it('stops when asked, but not while it has work when that is the condition', async () => {
    const stop = (body: string) => control.socket({ method: 'POST', path: '/api/daemon/stop', body })
    const { id, playing } = await control.job()
    const refused = await stop('{"if_idle": true}')
    expect([refused.status, control.wasStopped()]).toEqual([409, false])
    expect((await stop('{"if_idel": true}')).status).toBe(400)
    expect((await stop('[]')).status).toBe(400)
    expect(control.wasStopped()).toBe(false)
    playing.exit(0)
    await control.socket(`/api/jobs/${id}?wait_seconds=20`)
    expect((await stop('{"if_idle": true}')).json()).toEqual({ stopping: true })
    expect(control.wasStopped()).toBe(true)
    expect((await stop('')).status).toBe(202)
  })

  it('explains its configuration and checks its runtimes', async () => {
    expect((await control.socket('/api/config')).text).toContain('http.port')
    expect((await control.socket('/api/doctor')).json()).toMatchObject({ ready: true })
  })

  it('lists machines and refuses to destroy one that works', async () => {
    const { id, playing } = await control.job()
    const { machines } = (await control.socket('/api/machines')).json<{
      machines: { machine_id: string; job_id: string }[]
    }>()
    const machine = machines.find(({ job_id }) => job_id === id)!
    const destroy = (name: string) => control.socket({ method: 'DELETE', path: `/api/machines/${name}` })
    expect((await destroy(machine.machine_id)).status).toBe(409)
    expect((await destroy(newId())).status).toBe(404)
    expect((await destroy('nonsense')).status).toBe(404)
    playing.exit(0)
  })
})

describe('metrics', () => {
  it('count jobs by state, finished jobs, phases and requests', async () => {
    const { id, playing } = await control.job()
    playing.exit(3)
    await control.socket(`/api/jobs/${id}?wait_seconds=20`)
    const metrics = await vi.waitFor(
      async () => {
        const { text } = await control.socket('/metrics')
        expect(text).toMatch(/deputy_jobs_finished_total\{status="failed",runtime="sandbox"\} 1/)
        return text
      },
      { timeout: 10_000 },
    )
    expect(metrics).toMatch(/deputy_jobs\{state="failed"\} \d+/)
    expect(metrics).toMatch(/deputy_queue_depth 0/)
    expect(metrics).toMatch(/deputy_queue_oldest_seconds 0/)
    for (const phase of ['queued', 'provisioning', 'running'])
      expect(metrics).toMatch(
        new RegExp(`deputy_job_phase_seconds_count\\{phase="${phase}",runtime="sandbox"\\} \\d+`),
      )
    expect(metrics).toMatch(
      /deputy_http_requests_total\{method="GET",route="\/api\/jobs\/\{id\}",status="2xx"\} \d+/,
    )
    expect(metrics).not.toContain(id)
  })

  it('follow the text format line by line', async () => {
    const answer = await control.socket('/metrics')
    expect(answer.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
    const LINE = /^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? -?[\d.e+-]+)$/
    for (const line of answer.text.trimEnd().split('\n')) expect(line).toMatch(LINE)
  })
})

interface OpenApi {
  openapi: string
  paths: Record<string, Record<string, { operationId: string; responses: Record<string, unknown> }>>
}

describe('the OpenAPI document', () => {
  it('holds every route that is served, and no other', async () => {
    const document = (await control.socket('/openapi.json')).json<OpenApi>()
    expect(document.openapi).toBe('3.1.0')
    const described = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map(method => `${method.toUpperCase()} ${path}`),
    )
    const served = control.app.routes.map(
      ({ method, path }) => `${method} ${path.replace(/:(\w+)(\{\.\+\})?/g, '{$1}')}`,
    )
    expect(described.sort()).toEqual(served.sort())
    expect(described).toContain('GET /api/jobs/{id}/artifacts/{path}')
  })

  it('has an operation id of its own for each, and describes the manifest', async () => {
    const answer = await control.socket('/openapi.json')
    const operations = Object.values(answer.json<OpenApi>().paths).flatMap(path => Object.values(path))
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length)
    expect(answer.text).toContain('idempotency_key')
    expect(answer.text).not.toContain('"$schema"')
  })

  it('describes the answers as they are, field by field', async () => {
    const id = await control.finished({ 'a.txt': 'x' }, 'out')
    const { playing } = await control.job()
    const answers: [string, z.ZodType][] = [
      ['/api/jobs', jobPageSchema],
      [`/api/jobs/${id}`, jobSchema],
      [`/api/jobs/${id}/result`, resultSchema],
      [`/api/jobs/${id}/output`, outputPageSchema],
      [`/api/jobs/${id}/events`, eventListSchema],
      [`/api/jobs/${id}/artifacts`, artifactListSchema],
      ['/api/machines', machineListSchema],
      ['/api/doctor', doctorSchema],
      ['/api/daemon', daemonSchema],
      ['/api/config', settingsSchema],
      ['/readyz', readySchema],
      [`/api/jobs/${newId()}`, errorSchema],
    ]
    for (const [path, schema] of answers) {
      const answer = (await control.socket(path)).json()
      expect([path, strict(schema).safeParse(answer).error?.message]).toEqual([path, undefined])
    }
    const stored = await control.socket({ method: 'PUT', path: '/api/blobs', body: 'x' })
    expect(strict(blobSchema).safeParse(stored.json()).success).toBe(true)
    playing.exit(0)
  })

  it('names in every route what it can answer', () => {
    const deps = {
      ...control,
      sessions: createSessionTickets([]),
      daemon: {
        version: '1',
        socket: '',
        home: '',
        startedAt: 0,
        url: () => null,
        stop: () => {},
        reload: () => ({ added: [], removed: [], changed: [], restart: [] }),
      },
      explainConfig: () => [],
      log: { error: () => {}, warn: () => {} },
      closing: control.closing.signal,
    }
    const routes = controlRoutes(deps, createConsoleSessions('key'))
    for (const { path, responses, summary } of routes) {
      expect([path, Object.keys(responses).length]).not.toEqual([path, 0])
      expect(summary).toMatch(/^[A-Z/]/)
    }
  })
})

/** A field that is answered but not described is a drift that a loose schema would let pass. */
const strict = (schema: z.ZodType): z.ZodType => {
  if (schema instanceof z.ZodObject)
    return z.strictObject(
      Object.fromEntries(
        Object.entries(schema.shape).map(([key, value]) => [key, strict(value as z.ZodType)]),
      ),
    )
  if (schema instanceof z.ZodArray) return z.array(strict(schema.element as z.ZodType))
  if (schema instanceof z.ZodNullable) return strict(schema.unwrap() as z.ZodType).nullable()
  if (schema instanceof z.ZodOptional) return strict(schema.unwrap() as z.ZodType).optional()
  if (schema instanceof z.ZodUnion) return z.union(schema.options.map(option => strict(option as z.ZodType)))
  return schema
}
