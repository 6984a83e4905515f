import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
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
const READERS = 60
const printed = Array.from({ length: 1_000_000 }, (_, index) => `${index + 1}\n`)
  .join('')
  .slice(0, PAGE)

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

it('pages of output that nobody reads cost a small part of their size, and one that is read is whole', async () => {
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
  const path = `/api/jobs/${job_id}/output?max_bytes=${PAGE}`
  const page = (await send({ socketPath: home.socket }, path)).json<WirePage>()
  expect(page).toMatchObject({ job_id, status: 'success', next_cursor: PAGE, done: true })
  const text = page.pieces.map(piece => ('text' in piece ? piece.text : '?')).join('')
  expect(text === printed).toBe(true)
  const before = residentBytes(pid)
  await Promise.all(Array.from({ length: READERS }, () => askWithoutReading(home.socket, path)))
  const cost = (residentBytes(pid) - before) / (READERS * PAGE)
  // It was more than 2 when each page was encoded as a whole; garbage that is not collected yet counts, too.
  expect(cost).toBeLessThan(0.6)
})

it('large results wait for their turn, so that clients that do not read cannot fill the memory', async () => {
  const directory = newHome()
  mkdirSync(join(directory, 'config'))
  writeFileSync(join(directory, 'config/config.yaml'), JSON.stringify({ keep: { outputHead: 2 * PAGE } }))
  const { client, home } = await startDaemon({
    directory,
    env: { DEPUTY_ALLOW_HOST: '1', DEPUTY_RUNTIME: 'host' },
  })
  const { job_id } = await client.submit({ task: `seq 1 1000000 | head -c ${PAGE}` })
  await client.wait(job_id, { timeoutMs: 50_000, signal: AbortSignal.timeout(60_000) })
  const path = `/api/jobs/${job_id}/result?max_bytes=${PAGE}`
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
