import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ErrorBody } from '../../../src/jobs/errors.ts'
import { newId } from '../../../src/jobs/ids.ts'
import { type Control, startControl } from '../../support/http/control.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.close())

interface Job {
  job_id: string
  status: string
}

const submit = (body: string, headers: Record<string, string> = {}) =>
  control.socket({ method: 'POST', path: '/api/jobs', body, headers })

const errorOf = (answer: { json<T>(): T }): ErrorBody => answer.json<{ error: ErrorBody }>().error

describe('submitting', () => {
  it('answers 201 with the job and where it is', async () => {
    const made = await submit('{"task": "echo hello", "labels": {"team": "a"}}', { 'x-deputy-origin': 'cli' })
    expect(made.status).toBe(201)
    const job = made.json<Job>()
    expect(job).toMatchObject({ task: 'echo hello', origin: 'cli', labels: { team: 'a' } })
    expect(made.headers).toMatchObject({
      'content-type': 'application/json',
      'x-content-type-options': 'nosniff',
      location: `/api/jobs/${job.job_id}`,
    })
    expect((await control.socket(`/api/jobs/${job.job_id}`)).json<Job>().job_id).toBe(job.job_id)
  })

  it('answers 200 and the same job when the idempotency key comes again, in the manifest or as a header', async () => {
    const first = await submit('{"task": "echo once", "idempotency_key": "k1"}')
    const again = await submit('{"task": "echo once"}', { 'idempotency-key': 'k1' })
    expect([first.status, again.status]).toEqual([201, 200])
    expect(again.json<Job>()).toMatchObject({ job_id: first.json<Job>().job_id, deduplicated: true })
  })

  it('refuses a header and a manifest with different idempotency keys', async () => {
    const answer = await submit('{"task": "x", "idempotency_key": "a"}', { 'idempotency-key': 'b' })
    expect(answer.status).toBe(400)
    expect(errorOf(answer).message).toContain("'b'")
  })

  it('answers 409 when a key is used for another manifest', async () => {
    await submit('{"task": "echo one", "idempotency_key": "k2"}')
    expect((await submit('{"task": "echo two", "idempotency_key": "k2"}')).status).toBe(409)
  })

  it.each([
    ['nothing', ''],
    ['broken JSON', '{"task": '],
    ['a list', '[]'],
    ['text', '"task"'],
    ['null', 'null'],
    ['a manifest with an unknown key', '{"task": "x", "tsak": 1}'],
    ['a manifest without a task', '{}'],
    ['a polluted prototype', '{"__proto__": {"task": "x"}}'],
    ['very deep nesting', '['.repeat(100_000)],
    ['very deep closed nesting', `{"task": "x", "labels": ${'['.repeat(50_000)}${']'.repeat(50_000)}}`],
  ])('answers %s with a clean 400', async (_, body) => {
    const answer = await submit(body)
    expect(answer.status).toBe(400)
    expect(answer.headers['content-type']).toBe('application/json')
    expect(errorOf(answer)).toMatchObject({ code: 'invalid', retryable: false })
    expect(answer.text).not.toMatch(/\bat .*\.[jt]s/)
    expect(answer.text.length).toBeLessThan(2000)
  })

  it('refuses a body that is not UTF-8 instead of changing it', async () => {
    const body = Buffer.concat([Buffer.from('{"task": "'), Buffer.of(0xff), Buffer.from('"}')])
    const answer = await control.socket({ method: 'POST', path: '/api/jobs', body })
    expect(answer.status).toBe(400)
    expect(errorOf(answer).message).toContain('UTF-8')
  })

  it('names the nearest key', async () => {
    expect(errorOf(await submit('{"task": "x", "agent_type": "script"}')).message).toContain("'agentType'")
  })

  it('answers 413 to a body that declares too much, before reading it', async () => {
    const answer = await control.socket({
      method: 'POST',
      path: '/api/jobs',
      headers: { 'content-length': String(17 * 1024 * 1024), connection: 'close' },
      body: '{"task": "x"',
    })
    expect(answer.status).toBe(413)
    expect(errorOf(answer)).toMatchObject({ code: 'too_large' })
  })

  it('answers 413 to a body without a length that turns out too large', async () => {
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (let i = 0; i < 40; i++) yield Buffer.alloc(1024 * 1024, 32)
    }
    const answer = await control.socket({ method: 'POST', path: '/api/jobs', body: endless() })
    expect(answer.status).toBe(413)
  })

  it('takes a chunked body', async () => {
    async function* pieces(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('{"task": ')
      yield Buffer.from('"echo chunked"}')
    }
    expect((await control.socket({ method: 'POST', path: '/api/jobs', body: pieces() })).status).toBe(201)
  })

  it('refuses an origin that is not a plain name', async () => {
    expect((await submit('{"task": "x"}', { 'x-deputy-origin': 'a b<script>' })).status).toBe(400)
  })
})

describe('reading', () => {
  it('waits for a change of status', async () => {
    const { id, playing } = await control.job()
    const waiting = control.socket(`/api/jobs/${id}?wait_seconds=30&since=running`)
    playing.exit(3)
    expect((await waiting).json()).toMatchObject({ status: 'failed', exit_code: 3 })
  })

  it('answers with what there is when the time is over', async () => {
    const { id, playing } = await control.job()
    const answer = await control.socket(`/api/jobs/${id}?wait_seconds=0.05`)
    expect(answer.json()).toMatchObject({ status: 'running' })
    playing.exit(0)
  })

  it('gives the result of a finished job, and 409 before', async () => {
    const { id, playing } = await control.job()
    expect((await control.socket(`/api/jobs/${id}/result`)).status).toBe(409)
    await playing.print('hello\n')
    playing.exit(0)
    await control.socket(`/api/jobs/${id}?wait_seconds=30`)
    expect((await control.socket(`/api/jobs/${id}/result?max_bytes=1000`)).json()).toMatchObject({
      status: 'success',
      output: 'hello\n',
      truncated: null,
    })
  })

  it('lists jobs by status and label, page by page', async () => {
    for (let i = 0; i < 5; i++)
      await control.deputy.submit({ task: `n ${i}`, labels: { set: 'page' } }, 'test')
    const seen: string[] = []
    let cursor = ''
    for (let page = 0; page < 10; page++) {
      const answer = await control.socket(`/api/jobs?label=set%3Dpage&limit=2${cursor}`)
      const { jobs, next_cursor } = answer.json<{ jobs: Job[]; next_cursor: string | null }>()
      seen.push(...jobs.map(job => job.job_id))
      if (next_cursor === null) break
      cursor = `&cursor=${next_cursor}`
    }
    expect(new Set(seen).size).toBe(5)
    const none = await control.socket('/api/jobs?label=set%3Dpage&status=timeout')
    expect(none.json()).toEqual({ jobs: [], next_cursor: null })
  })

  it.each([
    ['/api/jobs?limit=0', '\'limit\' is "0"'],
    ['/api/jobs?limit=1e3', '\'limit\' is "1e3"'],
    ['/api/jobs?limit=', '\'limit\' is ""'],
    ['/api/jobs?limit=1&limit=2', "'limit' is given twice"],
    ['/api/jobs?status=done', '\'status\' is "done"'],
    ['/api/jobs?labels=a', "did you mean 'label'?"],
    ['/api/jobs?cursor=nonsense', "'nonsense'"],
    [`/api/jobs/${newId()}?wait_seconds=301`, '\'wait_seconds\' is "301"'],
    [`/api/jobs/${newId()}/cancel?force=1`, "unknown parameter 'force'", 'POST'],
    ['/livez?x=1', "unknown parameter 'x'"],
  ])('refuses %s and names the value', async (path, part, method = 'GET') => {
    const answer = await control.socket({ path, method })
    expect(answer.status).toBe(400)
    expect(errorOf(answer)).toMatchObject({ code: 'invalid' })
    expect(errorOf(answer).message).toContain(part)
  })

  it.each([newId(), 'nonsense', '..%2f..%2fetc', '%00', "'; drop table jobs;--"])(
    'answers 404 for the job %s on every route of a job',
    async id => {
      const encoded = id.includes('%') ? id : encodeURIComponent(id)
      for (const rest of [
        '',
        '/result',
        '/output',
        '/output/stream',
        '/events',
        '/events/stream',
        '/artifacts',
        '/artifacts/a',
        '/patch',
      ])
        expect([rest, (await control.socket(`/api/jobs/${encoded}${rest}`)).status]).toEqual([rest, 404])
      expect((await control.socket({ method: 'POST', path: `/api/jobs/${encoded}/cancel` })).status).toBe(404)
      expect((await control.socket({ method: 'DELETE', path: `/api/jobs/${encoded}` })).status).toBe(404)
    },
  )
})

describe('ending', () => {
  it('cancels a running job, and says 409 to a second wish after the end', async () => {
    const { id } = await control.job()
    const cancel = { method: 'POST', path: `/api/jobs/${id}/cancel` }
    expect((await control.socket(cancel)).json()).toMatchObject({ job_id: id, cancel_requested: true })
    const ended = await control.socket(`/api/jobs/${id}?wait_seconds=30`)
    expect(ended.json()).toMatchObject({ status: 'cancelled' })
    expect((await control.socket(cancel)).status).toBe(409)
  })

  it('forgets a finished job and refuses to forget a running one', async () => {
    const { id, playing } = await control.job()
    const forget = { method: 'DELETE', path: `/api/jobs/${id}` }
    expect((await control.socket(forget)).status).toBe(409)
    playing.exit(0)
    await control.socket(`/api/jobs/${id}?wait_seconds=30`)
    const gone = await control.socket(forget)
    expect([gone.status, gone.text]).toEqual([204, ''])
    expect((await control.socket(`/api/jobs/${id}`)).status).toBe(404)
  })
})

describe('what is not there', () => {
  it('answers an unknown path with 404 and a hint', async () => {
    const answer = await control.socket('/api/job')
    expect(answer.status).toBe(404)
    expect(errorOf(answer).hint).toContain('/openapi.json')
  })

  it('answers a known path with another method with 405 and the methods it takes', async () => {
    const answer = await control.socket({ method: 'PUT', path: '/api/jobs' })
    expect([answer.status, answer.headers.allow]).toEqual([405, 'GET, POST'])
    expect(errorOf(answer).code).toBe('method_not_allowed')
    expect((await control.socket({ method: 'OPTIONS', path: '/api/jobs' })).status).toBe(405)
    expect((await control.socket({ method: 'PROPFIND', path: '/livez' })).status).toBe(405)
  })

  it('answers HEAD like GET, without a body', async () => {
    const id = await control.finished()
    const head = await control.socket({ method: 'HEAD', path: `/api/jobs/${id}` })
    expect([head.status, head.text, head.headers['content-type']]).toEqual([200, '', 'application/json'])
  })

  it('logged no defect in all of this', () => {
    expect(control.errors).toEqual([])
  })
})
