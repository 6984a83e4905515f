import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import type { WirePage } from '../../../src/client/wire-output.ts'
import { removeDirectory, startDaemon, type TestDaemon } from '../../support/daemon.ts'
import { send } from '../../support/http/send.ts'
import { take, watch } from '../../support/http/watch.ts'

const ENV = { DEPUTY_ALLOW_HOST: '1', DEPUTY_RUNTIME: 'host' }

const homes = new Map<string, TestDaemon>()
const start = async (directory?: string): Promise<TestDaemon> => {
  const daemon = await startDaemon({ env: ENV, ...(directory !== undefined && { directory }) })
  homes.set(daemon.directory, daemon)
  return daemon
}

afterEach(async () => {
  for (const [directory, daemon] of homes) {
    await daemon.kill()
    removeDirectory(directory)
  }
  homes.clear()
})

const token = (daemon: TestDaemon, name: string): string =>
  readFileSync(join(daemon.home.stateDir, name), 'utf8').trim()

it('serves a job from submit to artifact over TCP with the tokens of its home', async () => {
  const daemon = await start()
  const { url } = await daemon.client.daemon()
  const port = Number(new URL(url!).port)
  const full = { authorization: `Bearer ${token(daemon, 'token')}` }
  const read = { authorization: `Bearer ${token(daemon, 'token-readonly')}` }
  expect(statSync(join(daemon.home.stateDir, 'token')).mode & 0o777).toBe(0o600)
  expect(statSync(daemon.home.socket).mode & 0o777).toBe(0o600)

  const body = JSON.stringify({
    task: 'echo hello; echo content > result.txt; exit 4',
    artifacts: ['result.txt'],
  })
  const made = await send({ port }, { method: 'POST', path: '/api/jobs', headers: full, body })
  expect(made.status).toBe(201)
  const { job_id } = made.json<{ job_id: string }>()
  const ended = await send({ port }, { path: `/api/jobs/${job_id}?wait_seconds=50`, headers: read })
  expect(ended.json()).toMatchObject({ status: 'failed', exit_code: 4, origin: 'http' })
  const file = await send({ port }, { path: `/api/jobs/${job_id}/artifacts/result.txt`, headers: read })
  expect([file.status, file.text]).toEqual([200, 'content\n'])
  const output = await take(
    await watch({ port, host: '127.0.0.1' }, `/api/jobs/${job_id}/output/stream`, read),
  )
  expect(output.map(({ event }) => event)).toEqual(['output', 'end'])
  expect(
    (await send({ port }, { method: 'DELETE', path: `/api/jobs/${job_id}`, headers: read })).status,
  ).toBe(403)
  expect((await send({ port }, { path: '/metrics', headers: read })).text).toContain(
    'deputy_jobs_finished_total',
  )
  expect(daemon.log()).not.toContain(token(daemon, 'token'))
})

it('lets a watcher go on after the daemon was killed, without losing or doubling a line', async () => {
  const first = await start()
  const lines = 60
  const { job_id } = await first.client.submit({
    task: `for i in $(seq ${lines}); do echo "line $i"; sleep 0.05; done`,
    timeout: 60,
  })
  const path = `/api/jobs/${job_id}/output/stream`
  const events = await take(await watch({ socketPath: first.home.socket }, path), 5)
  await first.kill('SIGKILL')
  const second = await start(first.directory)
  const last = events.at(-1)!.id
  events.push(
    ...(await take(await watch({ socketPath: second.home.socket }, path, { 'last-event-id': last }))),
  )
  const text = events
    .filter(({ event }) => event === 'output')
    .flatMap(({ data }) => (JSON.parse(data) as WirePage).pieces)
    .map(piece => ('text' in piece ? piece.text : ''))
    .join('')
  expect(text).toBe(Array.from({ length: lines }, (_, i) => `line ${i + 1}\n`).join(''))
  expect(events.at(-1)).toMatchObject({ event: 'end' })
})

it('ends its streams when it is stopped, and is gone within its time', async () => {
  const daemon = await start()
  const { job_id } = await daemon.client.submit({ task: 'sleep 10', timeout: 60 })
  const streams = await Promise.all(
    [`/api/jobs/${job_id}/output/stream`, `/api/jobs/${job_id}/events/stream`, '/api/events/stream'].map(
      path => watch({ socketPath: daemon.home.socket }, path),
    ),
  )
  const waiting = send({ socketPath: daemon.home.socket }, `/api/jobs/${job_id}?wait_seconds=60`)
  const ends = Promise.all(streams.map(stream => take(stream)))
  const begin = performance.now()
  await daemon.client.stopDaemon()
  expect((await waiting).status).toBe(200)
  for (const events of await ends) expect(events.every(({ event }) => event !== 'end')).toBe(true)
  expect(await daemon.ended()).toBe(0)
  expect(performance.now() - begin).toBeLessThan(15_000)
})
