import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
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
/** A web server in the machine. */
const SERVER = `
from http.server import *
class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"x" * 2000000)
ThreadingHTTPServer(("127.0.0.1", 8123), Page).serve_forever()
`
/** A shell with a prompt that nothing else prints. */
const SHELL = ['env', 'PS1=%%', 'sh']
const PATIENCE = 240_000
/** Each step starts programs, beside other tests on the same cores. */
const SLOW = 120_000

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
  await until(async () => (await cli.run(['logs', job_id])).stdout === 'made\n', 'the job to run', SLOW)
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

  it('refuses tokens, and admits one connection for a ticket, from pages of this computer', async () => {
    const id = await startJob('--runtime', 'sandbox')
    const { url, home } = await cli.json<{ url: string; home: string }>(['daemon', 'status', '--json'])
    const token = (file: string) => readFileSync(join(home, file), 'utf8').trim()
    const ask = async (bearer: string) =>
      fetch(`${url}/api/jobs/${id}/sessions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${bearer}` },
        body: JSON.stringify({ command: ['cat'] }),
      })
    // An agent may have a token; what it opens would see the secrets of the job, and no policy would see it.
    for (const file of ['token-readonly', 'token']) expect((await ask(token(file))).status).toBe(403)
    const opened = /#code=(\S+)/.exec((await cli.tty(['open', '--no-browser'])).stdout)
    const login = await fetch(`${url}/api/console/sessions`, {
      method: 'POST',
      body: JSON.stringify({ code: opened?.[1] }),
    })
    const { session } = (await login.json()) as { session: string }
    const upgrade = (ticket: string, origin: string) => statusLine(Number(new URL(url).port), ticket, origin)
    const { ticket } = (await (await ask(session)).json()) as { ticket: string }
    expect(await upgrade(ticket, 'http://evil.example')).toContain('403')
    expect(await upgrade(ticket, url)).toContain('101')
    expect(await upgrade(ticket, url)).toContain('403')
    expect((await cli.run(['cancel', id])).code).toBe(0)
  })
})

describe.skipIf(missing)('deputy cp and deputy forward', { timeout: PATIENCE }, () => {
  it('copies files and directories into the machine of a running job, and back', async () => {
    const id = await startJob('--runtime', 'sandbox')
    const here = mkdtempSync(join(tmpdir(), 'deputy-cp-'))
    mkdirSync(join(here, 'tree/.git'), { recursive: true })
    writeFileSync(join(here, 'tree/.git/config'), 'secret')
    writeFileSync(join(here, 'tree/.gitignore'), '*.bin')
    const bytes = randomBytes(3_000_000)
    writeFileSync(join(here, 'tree/large.bin'), bytes)
    writeFileSync(join(here, 'tree/run'), 'echo from the machine', { mode: 0o755 })
    const done = { code: 0, stdout: '' }
    expect(await cli.run(['cp', join(here, 'tree'), `${id}:new/dir`])).toMatchObject(done)
    expect(await cli.run(['cp', join(here, 'tree/run'), `${id}:new`])).toMatchObject(done)
    const hostile =
      'ln -s / new/dir/out; ln -s /etc/passwd new/link; ln new/run new/same; mkdir new/dir/.GIT; touch new/dir/.GIT/x; ls -A new/dir; ./new/run'
    const inside = await cli.run(['shell', id], { input: hostile })
    expect(inside.stdout).toBe('.GIT\n.gitignore\nlarge.bin\nout\nrun\nfrom the machine\n')

    const back = join(here, 'back')
    const copied = await cli.run(['cp', `${id}:new`, back])
    expect(copied.code).toBe(0)
    expect(copied.stderr).toContain('5 files')
    for (const left of ['dir/out', 'link', 'dir/.GIT/x'])
      expect(copied.stderr).toContain(`left out: ${left}:`)
    expect(readFileSync(join(back, 'dir/large.bin')).equals(bytes)).toBe(true)
    expect(readdirSync(back, { recursive: true }).sort()).toEqual([
      ...['dir', 'dir/.gitignore', 'dir/large.bin', 'dir/run', 'run', 'same'],
    ])
    expect(statSync(join(back, 'run')).mode & 0o100).toBe(0o100)

    const again = await cli.run(['cp', `${id}:new/run`, back])
    expect(again.stderr).toContain('already exists')
    expect((await cli.run(['cp', '--force', `${id}:new/run`, back])).code).toBe(0)
    // Two names of one file come as a file and a link to it: neither is written through what is there.
    writeFileSync(join(here, 'mine'), 'mine')
    mkdirSync(join(back, 'new'))
    for (const name of ['run', 'same']) symlinkSync(join(here, 'mine'), join(back, 'new', name))
    expect((await cli.run(['cp', '--force', `${id}:new`, back])).code).toBe(0)
    expect(readFileSync(join(here, 'mine'), 'utf8')).toBe('mine')
    expect(readFileSync(join(back, 'new/same'), 'utf8')).toBe('echo from the machine')
    symlinkSync(here, join(back, 'dir/linked'))
    await cli.run(['shell', id], { input: 'mkdir new/dir/linked; echo x >new/dir/linked/escaped' })
    const through = await cli.run(['cp', '--force', `${id}:new/dir`, back])
    expect(through.stderr).toContain('is a symbolic link')
    expect(existsSync(join(here, 'escaped'))).toBe(false)
    expect((await cli.run(['cp', `${id}:none`, back])).stderr).toContain("no file or directory 'none'")
    expect((await cli.run(['cp', join(here, 'none'), `${id}:`])).stderr).toContain('neither a file nor')
    expect((await cli.run(['cp', `${id}:new/run`, join(here, 'tree/.git/')])).stderr).toContain("git's own")
    const { stdout: events } = await cli.run(['events', id])
    expect(events).toContain('session by=cli command=sh -c # receive.sh')
    expect((await cli.run(['cancel', id])).code).toBe(0)
  })

  it('copies into and out of a kept machine', async () => {
    const kept = await cli.run(['run', '--runtime', 'sandbox', '--keep', '--', 'echo kept >file'])
    expect(kept.code).toBe(0)
    const here = mkdtempSync(join(tmpdir(), 'deputy-cp-'))
    writeFileSync(join(here, 'mine'), 'mine')
    expect(await cli.run(['cp', 'last:file', here])).toMatchObject({ code: 0 })
    expect(readFileSync(join(here, 'file'), 'utf8')).toBe('kept\n')
    expect(await cli.run(['cp', join(here, 'mine'), 'last:sub/other'])).toMatchObject({ code: 0 })
    const seen = await cli.run(['exec', 'last', '--', 'cat sub/other; ls -A'])
    expect(seen.stdout).toBe('minefile\nsub\n')
  })

  it('brings a port of a machine without a network to 127.0.0.1, until the job ends', async () => {
    const id = await startJob('--runtime', 'sandbox')
    const forward = cli.start(['forward', id, '0:8123'])
    await forward.saw('\n')
    const { port } = new URL(forward.stdout().trim())
    const get = () => fetch(`http://127.0.0.1:${port}/big`, { headers: { connection: 'close' } })
    await expect(get()).rejects.toThrow()
    const serve = cli.run(['shell', id, '--', 'python3', '-c', SERVER], {})
    await until(
      async () =>
        get().then(
          answer => answer.ok,
          () => false,
        ),
      'the server',
      SLOW,
    )
    const pages = await Promise.all([get(), get(), get()].map(async page => (await page).arrayBuffer()))
    for (const page of pages) expect(page.byteLength).toBe(2_000_000)
    expect((await cli.run(['cancel', id])).code).toBe(0)
    const { code, stderr } = await forward.finished
    expect(code).toBe(0)
    expect(stderr).toContain('Nothing listens on port 8123')
    expect(stderr).toContain('The job has ended: cancelled')
    await serve
  })
})

describe.skipIf(missing)('deputy run -it', { timeout: PATIENCE }, () => {
  it('is a job that ends with its terminal', async () => {
    const played = await onTerminal(['run', '-it', '--runtime', 'sandbox'], [['type', 'pwd; exit 5\r']])
    expect(played).toMatchObject({ code: 5, restored: true })
    expect(played.shown).toContain('/work')
    const job = await cli.json<{ exit_code: number; status: string }>(['status', 'last', '--json'])
    expect(job).toMatchObject({ exit_code: 5, status: 'failed' })
    expect((await cli.run(['run', '-it', '--', 'true'])).stderr).toContain('This needs a terminal')
  })
})
