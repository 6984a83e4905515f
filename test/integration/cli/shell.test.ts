import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { createTestCli, MAIN, noProvider, until } from '../../support/cli.ts'
import { has } from '../../support/has.ts'
import { requireOrSkip } from '../../support/require.ts'

const needed = ['python3', 'script'].filter(tool => !has(tool))
const missing = requireOrSkip(
  needed.length > 0 ? `${needed.join(' and ')} is not installed` : await noProvider(),
)
const PTY = fileURLToPath(new URL('../../support/pty-session.py', import.meta.url))
/** A shell with a prompt that nothing else prints. */
const SHELL = ['env', 'PS1=%%', 'sh']
const PATIENCE = 180_000

type Step =
  | readonly ['type' | 'expect', string]
  | readonly ['resize', number, number]
  | readonly ['kill', number]

interface Played {
  code: number | null
  shown: string
  restored: boolean
  missing: string | null
}

const cli = createTestCli({ DEPUTY_ALLOW_HOST: '1', DEPUTY_HTTP: 'true', DEPUTY_HTTP_PORT: '0' })
afterAll(() => cli.close())

/** Runs deputy on a terminal of 90 columns and 25 rows. */
const onTerminal = (args: readonly string[], steps: readonly Step[]): Promise<Played> =>
  new Promise((resolve, reject) => {
    const child = spawn('python3', [PTY, '25x90', process.execPath, MAIN, ...args], {
      env: { ...cli.env, TERM: 'xterm-256color' },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    let text = ''
    child.stdout.on('data', chunk => {
      text += chunk
    })
    child.on('close', () => {
      const played: Played = JSON.parse(text)
      if (played.missing === null) resolve(played)
      else reject(new Error(`the terminal never showed '${played.missing}': ${played.shown}`))
    })
    child.stdin.end(steps.map(step => `${JSON.stringify(step)}\n`).join(''))
  })

/** A job that runs until it is cancelled. */
const startJob = async (...flags: string[]): Promise<string> => {
  const { job_id } = await cli.json<{ job_id: string }>([
    ...['submit', '--json', ...flags, '--', 'echo mine >made-by-job; echo made; exec sleep 1000'],
  ])
  await until(async () => (await cli.run(['logs', job_id])).stdout === 'made\n', 'the job to run')
  return job_id
}

/** The first line of the answer to the handshake of a WebSocket. */
const statusLine = (port: number, ticket: string, origin: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', reject)
    socket.once('data', data => {
      resolve(String(data).split('\r\n')[0]!)
      socket.destroy()
    })
    const headers = [
      ...[`host: localhost:${port}`, `origin: ${origin}`, 'connection: upgrade', 'upgrade: websocket'],
      ...['sec-websocket-version: 13', 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=='],
    ]
    socket.write(`GET /api/sessions/${ticket} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`)
  })

describe.skipIf(missing)('deputy shell', { timeout: PATIENCE }, () => {
  it('is a terminal in the machine of a running job', async () => {
    const id = await startJob('--runtime', 'sandbox')
    const played = await onTerminal(
      ['shell', id, '--', ...SHELL],
      [
        ['expect', '%%'],
        ['type', 'stty size; cat made-by-job; echo $TERM\r'],
        ['expect', '25 90'],
        ['expect', 'mine'],
        ['expect', 'xterm-256color'],
        ['resize', 40, 100],
        ['type', 'until [ "$(stty size)" = "40 100" ]; do sleep 0.1; done; echo res""ized\r'],
        ['expect', 'resized'],
        ['type', 'sh -c "echo beg""un; exec sleep 1000"\r'],
        ['expect', 'begun'],
        ['type', '\x03'],
        ['expect', '%%'],
        ['type', 'echo sta""tus $?\r'],
        ['expect', 'status 130'],
        ['type', 'set -m; sh -c "echo beg""un; exec sleep 1001"\r'],
        ['expect', 'begun'],
        ['type', '\x1a'],
        ['expect', '%%'],
        ['type', 'jobs; exit 9; exit 9\r'],
        ['expect', 'Stopped'],
      ],
    )
    expect(played).toMatchObject({ code: 9, restored: true })
    const { stdout: events } = await cli.run(['events', id])
    expect(events).toContain('session by=cli command=env PS1=%% sh')
    // Without a terminal, stdin and stdout are pipes.
    const piped = await cli.run(['shell', id], { input: 'cat made-by-job; exit 7' })
    expect(piped).toMatchObject({ code: 7, stdout: 'mine\n' })
    expect((await cli.run(['cancel', id])).code).toBe(0)
  })

  it('says that the daemon died, and restores the terminal', async () => {
    const id = await startJob('--runtime', 'sandbox')
    const { pid } = await cli.json<{ pid: number }>(['daemon', 'status', '--json'])
    const played = await onTerminal(
      ['shell', id, '--', ...SHELL],
      [
        ['expect', '%%'],
        ['kill', pid],
        ['expect', 'The connection to the Deputy daemon was lost'],
      ],
    )
    expect(played).toMatchObject({ restored: true })
    expect(played.code).not.toBe(0)
    expect((await cli.run(['cancel', id])).code).toBe(0)
  })

  it('is a recorded job of its own in a kept machine, here one without isolation', async () => {
    const kept = await cli.run(['run', '--runtime', 'host', '--keep', '--', 'echo kept >file'])
    expect(kept.code).toBe(0)
    const played = await onTerminal(
      ['shell', '--record', 'last', '--', ...SHELL],
      [
        ['expect', '%%'],
        ['type', 'cat file; exit 6\r'],
      ],
    )
    expect(played).toMatchObject({ code: 6, restored: true })
    const log = await cli.run(['logs', '--raw', 'last'])
    expect(log.stdout).toContain('cat file; exit 6\r\nkept')
    const { exit_code } = await cli.json<{ exit_code: number }>(['status', 'last', '--json'])
    expect(exit_code).toBe(6)
  })

  it('refuses the read-only token, and admits one connection for a ticket, from pages of this computer', async () => {
    const id = await startJob('--runtime', 'sandbox')
    const { url, home } = await cli.json<{ url: string; home: string }>(['daemon', 'status', '--json'])
    const token = (file: string) => readFileSync(join(home, file), 'utf8').trim()
    const ask = async (file: string) =>
      fetch(`${url}/api/jobs/${id}/sessions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token(file)}` },
        body: JSON.stringify({ command: ['cat'] }),
      })
    expect((await ask('token-readonly')).status).toBe(403)
    const upgrade = (ticket: string, origin: string) => statusLine(Number(new URL(url).port), ticket, origin)
    const { ticket } = (await (await ask('token')).json()) as { ticket: string }
    expect(await upgrade(ticket, 'http://evil.example')).toContain('403')
    expect(await upgrade(ticket, url)).toContain('101')
    expect(await upgrade(ticket, url)).toContain('403')
    expect((await cli.run(['cancel', id])).code).toBe(0)
  })
})

describe.skipIf(missing)('deputy run -it', { timeout: PATIENCE }, () => {
  it('is a job that ends with its terminal', async () => {
    const played = await onTerminal(['run', '-it', '--runtime', 'sandbox'], [['type', 'pwd; exit 5\r']])
    expect(played).toMatchObject({ code: 5, restored: true })
    expect(played.shown).toContain('/work')
    const job = await cli.json<{ exit_code: number; status: string }>(['status', 'last', '--json'])
    expect(job).toMatchObject({ exit_code: 5, status: 'failed' })
    expect((await cli.run(['run', '-it', '--', 'true'])).stderr).toContain('A terminal is needed')
  })
})
