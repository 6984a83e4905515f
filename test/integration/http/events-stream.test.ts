import { afterAll, beforeAll, expect, it } from 'vitest'
import type { WireEvent } from '../../../src/client/wire-event.ts'
import { type Control, startControl } from '../../support/http/control.ts'
import { take, watch } from '../../support/http/watch.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.close())

const watchEvents = (path: string, headers: Record<string, string> = {}) =>
  watch({ socketPath: control.home.socket }, path, headers)

it('reports each event of a job from its beginning to its end', async () => {
  const { id, playing } = await control.job()
  const watching = await watchEvents(`/api/jobs/${id}/events/stream`)
  playing.exit(0)
  const events = await take(watching)
  const told = events.slice(0, -1).map(({ data }) => JSON.parse(data) as WireEvent)
  expect(told.filter(({ type }) => type === 'state').map(({ data }) => data.to)).toEqual([
    'provisioning',
    'running',
    'success',
  ])
  expect(told[0]).toMatchObject({ type: 'submitted', job_id: id, at: expect.stringMatching(/^\d{4}-.*Z$/) })
  const end = events.at(-1)!
  expect(end).toMatchObject({ event: 'end', id: `${told.at(-1)!.seq}:end` })
  expect(JSON.parse(end.data)).toEqual({ job_id: id, status: 'success', exit_code: 0 })
})

it('continues after the last event that was received', async () => {
  const id = await control.finished()
  const all = await take(await watchEvents(`/api/jobs/${id}/events/stream`))
  for (let seen = 0; seen < all.length - 1; seen++) {
    const rest = await take(
      await watchEvents(`/api/jobs/${id}/events/stream`, { 'last-event-id': all[seen]!.id }),
    )
    expect(rest).toEqual(all.slice(seen + 1))
  }
  const { response } = await watchEvents(`/api/jobs/${id}/events/stream`, { 'last-event-id': all.at(-1)!.id })
  expect(response.statusCode).toBe(204)
})

it('reports the events of all jobs from now on, and from a known event on', async () => {
  const old = await control.finished()
  const watching = await watchEvents('/api/events/stream')
  const id = await control.finished()
  const fresh = await take(watching, 4)
  watching.close()
  expect(fresh.map(({ data }) => (JSON.parse(data) as WireEvent).job_id)).toEqual([id, id, id, id])
  const again = await watchEvents('/api/events/stream?after=0')
  const [first] = await take(again, 1)
  again.close()
  expect(JSON.parse(first!.data)).toMatchObject({ type: 'submitted' })
  const { events } = (await control.socket(`/api/jobs/${old}/events`)).json<{ events: WireEvent[] }>()
  expect(events[0]!.seq).toBeLessThan(Number(fresh[0]!.id))
})

it('lists events page by page', async () => {
  const id = await control.finished()
  const seen: number[] = []
  let after = 0
  for (let page = 0; page < 20; page++) {
    const answer = await control.socket(`/api/jobs/${id}/events?limit=2&after=${after}`)
    const { events, next_after } = answer.json<{ events: WireEvent[]; next_after: number }>()
    if (events.length === 0) break
    seen.push(...events.map(({ seq }) => seq))
    after = next_after
  }
  const whole = (await control.socket(`/api/jobs/${id}/events`)).json<{ events: WireEvent[] }>()
  expect(seen).toEqual(whole.events.map(({ seq }) => seq))
})
