import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { WirePage } from '../../../src/client/wire-output.ts'
import type { Deputy } from '../../../src/engine/deputy.ts'
import { type Control, startControl } from '../../support/http/control.ts'
import { take, type Watching, watch } from '../../support/http/watch.ts'

/** How often and at how many places the store is read for watchers. */
const reads = { calls: 0, active: 0 }

const counted = (deputy: Deputy): Deputy => ({
  ...deputy,
  output: async (...asked) => {
    reads.calls += 1
    reads.active += 1
    try {
      return await deputy.output(...asked)
    } finally {
      reads.active -= 1
    }
  },
})

let control: Control
const open: Watching[] = []
beforeAll(async () => {
  control = await startControl({ wrap: counted })
})
afterEach(() => {
  for (const watching of open.splice(0)) watching.close()
})
afterAll(() => control.close())

const watchJob = async (id: string, headers: Record<string, string> = {}, query = ''): Promise<Watching> => {
  const path = `/api/jobs/${id}/output/stream${query}`
  const watching = await watch({ socketPath: control.home.socket }, path, headers)
  open.push(watching)
  return watching
}

const textOf = (events: readonly { event: string; data: string }[]): string =>
  events
    .filter(({ event }) => event === 'output')
    .flatMap(({ data }) => (JSON.parse(data) as WirePage).pieces)
    .map(piece => ('text' in piece ? piece.text : 'skipped' in piece ? `<${piece.skipped}>` : '?'))
    .join('')

describe('following output', () => {
  it('brings it as it comes, then the end', async () => {
    const { id, playing } = await control.job()
    const watching = await watchJob(id)
    expect(watching.response.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
    })
    await playing.print('one\n')
    const [first] = await take({ ...watching, events: watching.events }, 1).then(events => events)
    expect(first).toMatchObject({ id: '4', event: 'output' })
    expect(JSON.parse(first!.data)).toMatchObject({
      job_id: id,
      status: 'running',
      next_cursor: 4,
      done: false,
    })
    const again = await watchJob(id, { 'last-event-id': '4' })
    await playing.print('two\n', 'stderr')
    playing.exit(3)
    const rest = await take(again)
    expect(textOf(rest)).toBe('two\n')
    expect(rest.at(-1)).toMatchObject({
      id: '8:end',
      event: 'end',
      data: JSON.stringify({ job_id: id, status: 'failed', exit_code: 3 }),
    })
    expect(rest.filter(({ event }) => event === 'end')).toHaveLength(1)
  })

  it('continues after each cut without losing or repeating a byte', async () => {
    const { id, playing } = await control.job()
    const printed: string[] = []
    const print = async (): Promise<void> => {
      for (let i = 0; i < 60; i++) {
        const text = `line ${i} grün ${'x'.repeat(i * 7)}\n`
        printed.push(text)
        await playing.print(text)
      }
      playing.exit(0)
    }
    const printing = print()
    let seen = ''
    let cursor: string | undefined
    for (let connections = 0; connections < 500; connections++) {
      const watching = await watchJob(id, cursor === undefined ? {} : { 'last-event-id': cursor })
      const events = await take(watching, 1 + (connections % 3))
      watching.close()
      seen += textOf(events)
      cursor = events.findLast(event => event.id !== '')?.id ?? cursor
      if (events.at(-1)?.event === 'end') break
    }
    await printing
    expect(seen).toBe(printed.join(''))
  })

  it('starts at the requested position, counted from the beginning or from the end', async () => {
    const id = await control.finished({}, '0123456789')
    expect(textOf(await take(await watchJob(id, {}, '?cursor=7')))).toBe('789')
    expect(textOf(await take(await watchJob(id, {}, '?cursor=-2')))).toBe('89')
    // A browser repeats the address it was given: what it has seen since counts for more.
    expect(textOf(await take(await watchJob(id, { 'last-event-id': '9' }, '?cursor=2')))).toBe('9')
  })

  it('tells a browser that has seen the end not to come back', async () => {
    const id = await control.finished({}, 'x')
    const { response } = await watchJob(id, { 'last-event-id': '1:end' })
    expect(response.statusCode).toBe(204)
  })

  it('refuses an unknown event id', async () => {
    const id = await control.finished()
    const { response } = await watchJob(id, { 'last-event-id': 'abc' })
    expect(response.statusCode).toBe(400)
  })

  it('answers HEAD without opening a stream', async () => {
    const id = await control.finished()
    const answer = await control.socket({ method: 'HEAD', path: `/api/jobs/${id}/output/stream` })
    expect(answer.headers['content-type']).toContain('text/event-stream')
  })

  it('ends the stream with an error event when the job is deleted under it', async () => {
    const { id, playing } = await control.job()
    await playing.print('x')
    const watching = await watchJob(id)
    await take(watching, 1)
    const again = await watchJob(id, { 'last-event-id': '1' })
    vi.spyOn(control.store, 'getJob').mockResolvedValueOnce(undefined)
    await playing.print('y')
    vi.restoreAllMocks()
    const events = await take(again)
    expect(events.at(-1)).toMatchObject({ event: 'error' })
    expect(JSON.parse(events.at(-1)!.data)).toMatchObject({ error: { code: 'not_found' } })
    playing.exit(0)
  })
})

describe('many watchers', () => {
  it('share what is read for them: 200 cost little more than one', { timeout: 120_000 }, async () => {
    const { id, playing } = await control.job()
    const watchers = await Promise.all(Array.from({ length: 200 }, () => watchJob(id)))
    const seen = Promise.all(watchers.map(watching => take(watching)))
    await vi.waitFor(() => expect(reads.active).toBeGreaterThan(0), { timeout: 20_000 })
    const before = reads.calls
    let printed = ''
    for (let i = 0; i < 200; i++) {
      printed += `line ${i}\n`
      await playing.print(`line ${i}\n`)
    }
    playing.exit(0)
    const all = await seen
    expect(new Set(all.map(textOf))).toEqual(new Set([printed]))
    expect(all.every(events => events.at(-1)?.event === 'end')).toBe(true)
    // One read for each print would be 200 here, and 40,000 if every watcher read for itself.
    expect(reads.calls - before).toBeLessThan(600)
  })

  it('that leave are not read for any more', async () => {
    const { id, playing } = await control.job()
    const watchers = await Promise.all([watchJob(id), watchJob(id), watchJob(id)])
    await playing.print('x')
    await Promise.all(watchers.map(watching => take(watching, 1)))
    for (const watching of watchers) watching.close()
    await vi.waitFor(() => expect(reads.active).toBe(0), { timeout: 10_000 })
    playing.exit(0)
  })

  it('that do not read delay no other client and cost one page, then continue with what is kept', {
    timeout: 120_000,
  }, async () => {
    const { id, playing } = await control.job()
    const slow = await watchJob(id)
    slow.response.pause()
    const page = Buffer.alloc(32 * 1024, 'x')
    const before = reads.calls
    const pages = 400
    for (let i = 0; i < pages; i++) await playing.print(page)
    playing.exit(0)
    await control.deputy.wait(id, { timeoutMs: 10_000, signal: control.closing.signal })
    // What the kernel and the connection hold; not what was printed.
    expect(reads.calls - before).toBeLessThan(pages / 4)
    const events = await take(slow)
    const pieces = events
      .filter(({ event }) => event === 'output')
      .flatMap(({ data }) => (JSON.parse(data) as WirePage).pieces)
    const skipped = pieces.reduce((sum, piece) => sum + ('skipped' in piece ? piece.skipped : 0), 0)
    const kept = pieces.reduce((sum, piece) => sum + ('skipped' in piece ? 0 : (piece.text ?? '').length), 0)
    expect(skipped).toBeGreaterThan(0)
    expect(kept + skipped).toBe(pages * page.length)
    expect(events.at(-1)?.event).toBe('end')
  })
})
