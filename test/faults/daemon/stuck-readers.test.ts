import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import type { WirePage } from '../../../src/client/wire-output.ts'
import { newHome, useDaemons } from '../../support/daemon.ts'
import { send } from '../../support/http/send.ts'

const startDaemon = useDaemons()
const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

const PAGE = 4 * 1024 * 1024
const READERS = 400
/** Three parts of 16 KiB and a connection. A reader that holds whole rows costs 200 KiB, one that holds a page 4 MiB. */
const READER_BYTES = 100 * 1024
const printed = Array.from({ length: 1_000_000 }, (_, index) => `${index + 1}\n`)
  .join('')
  .slice(0, PAGE)

/** A daemon with one finished job that printed 4 MiB. */
const begin = async () => {
  const directory = newHome()
  mkdirSync(join(directory, 'config'))
  writeFileSync(join(directory, 'config/config.yaml'), JSON.stringify({ keep: { outputHead: 2 * PAGE } }))
  const { client, home, pid } = await startDaemon({
    directory,
    env: { DEPUTY_ALLOW_HOST: '1', DEPUTY_RUNTIME: 'host' },
  })
  const { job_id } = await client.submit({ task: `seq 1 1000000 | head -c ${PAGE}` })
  const signal = AbortSignal.timeout(60_000)
  expect((await client.wait(job_id, { timeoutMs: 50_000, signal })).status).toBe('success')
  return { home, pid, job_id, path: `/api/jobs/${job_id}` }
}

/** Resolves when the answer has begun; nothing more of it is read. */
const askWithoutReading = (socketPath: string, path: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect(socketPath)
    sockets.push(socket)
    socket.once('error', reject)
    socket.once('data', chunk => {
      socket.pause()
      if (chunk.toString('latin1').startsWith('HTTP/1.1 200')) resolve()
      else reject(new Error(chunk.toString()))
    })
    socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`)
  })

const residentBytes = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024

/** When the memory does not grow any more. */
const settled = async (pid: number): Promise<void> => {
  for (let last = residentBytes(pid); ; ) {
    await sleep(300)
    const now = residentBytes(pid)
    if (now < last + 2 ** 20) return
    last = now
  }
}

it('readers of output that never read cost the daemon little memory, and one that reads gets all', {
  timeout: 240_000,
}, async () => {
  const { home, pid, job_id, path } = await begin()
  const page = (await send({ socketPath: home.socket }, `${path}/output?max_bytes=${PAGE}`)).json<WirePage>()
  expect(page).toMatchObject({ job_id, status: 'success', next_cursor: PAGE, done: true })
  expect(page.pieces.map(piece => ('text' in piece ? piece.text : '?')).join('') === printed).toBe(true)
  const raw = await send({ socketPath: home.socket }, `${path}/output?raw=1`)
  expect(raw.text === printed).toBe(true)
  // Another cursor for each, so that followers do not share what is read for one of them.
  const kinds = [
    (_: number) => `output?max_bytes=${PAGE}`,
    (index: number) => `output?raw=1&cursor=${index}`,
    (index: number) => `output/stream?cursor=${index}`,
  ]
  for (const kind of kinds) {
    const before = residentBytes(pid)
    const paths = Array.from({ length: READERS }, (_, index) => `${path}/${kind(index)}`)
    await Promise.all(paths.map(path => askWithoutReading(home.socket, path)))
    await settled(pid)
    const cost = (): number => (residentBytes(pid) - before) / READERS
    // Garbage counts until it is collected, and only further requests lead to that.
    for (let request = 0; request < 2000 && cost() >= READER_BYTES; request++)
      await send({ socketPath: home.socket }, '/api/jobs')
    expect(cost(), `bytes for each reader of ${kind(0)}`).toBeLessThan(READER_BYTES)
    for (const socket of sockets.splice(0)) socket.destroy()
  }
})

it('large results wait for their turn, so that clients that do not read cannot fill the memory', {
  timeout: 120_000,
}, async () => {
  const { home, job_id, path: job } = await begin()
  const path = `${job}/result?max_bytes=${PAGE}`
  for (let reader = 0; reader < 8; reader++) await askWithoutReading(home.socket, path)
  const refused = await send({ socketPath: home.socket }, path)
  expect(refused.status).toBe(503)
  expect(refused.json<{ error: { hint: string } }>().error.hint).toContain('max_bytes')
  const small = await send({ socketPath: home.socket }, `/api/jobs/${job_id}/result`)
  expect(small.status).toBe(200)
  sockets[0]!.destroy()
  const whole = await send({ socketPath: home.socket }, path)
  expect(whole.json<{ output: string }>().output.length).toBe(PAGE)
})
