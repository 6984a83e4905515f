import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Control, startControl } from '../../support/http/control.ts'

const MIB = 1024 * 1024
const big = Buffer.alloc(3 * MIB, 'abcdefghij')
const FILES = {
  'report.txt': '0123456789',
  'dist/app.js': 'alert(1)',
  'page.html': '<script>alert(1)</script>',
  'logo.svg': '<svg onload="alert(1)"/>',
  'grün & "quoted" 100%.txt': 'odd',
  'a#b?c.txt': 'marks',
  empty: '',
  'big.bin': big,
  'changes.patch': 'diff --git a/x b/x\n',
}

let control: Control
let id: string
beforeAll(async () => {
  control = await startControl({ maxUpload: 2 * MIB })
  id = await control.finished(FILES)
})
afterAll(() => control.close())

const fetchFile = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  control.socket({ method, path: `/api/jobs/${id}/artifacts/${path}`, headers })

const sha256 = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex')

describe('artifacts', () => {
  it('are listed with size and sha256', async () => {
    const { artifacts } = (await control.socket(`/api/jobs/${id}/artifacts`)).json<{
      artifacts: { path: string; size: number; sha256: string }[]
    }>()
    expect(artifacts.map(({ path }) => path).sort()).toEqual(Object.keys(FILES).sort())
    expect(artifacts.find(({ path }) => path === 'report.txt')).toEqual({
      path: 'report.txt',
      size: 10,
      sha256: sha256('0123456789'),
    })
  })

  it.each(Object.entries(FILES))('come back byte for byte: %s', async (path, content) => {
    const answer = await fetchFile(path.split('/').map(encodeURIComponent).join('/'))
    expect(answer.status).toBe(200)
    expect(answer.body.equals(Buffer.from(content))).toBe(true)
    expect(answer.headers['content-length']).toBe(String(Buffer.byteLength(content)))
    expect(answer.headers.etag).toBe(`"${sha256(content)}"`)
  })

  it.each(['page.html', 'logo.svg', 'dist/app.js', 'report.txt'])(
    'never run in a browser: %s',
    async path => {
      const { headers } = await fetchFile(path)
      expect(headers['content-type']).toMatch(/^(text\/plain; charset=utf-8|application\/octet-stream)$/)
      expect(headers['content-disposition']).toMatch(/^attachment; /)
      expect(headers['x-content-type-options']).toBe('nosniff')
      expect(headers['content-security-policy']).toContain('sandbox')
    },
  )

  it('come in parts', async () => {
    const part = await fetchFile('report.txt', { range: 'bytes=2-5' })
    expect([part.status, part.text, part.headers['content-range']]).toEqual([206, '2345', 'bytes 2-5/10'])
    expect(part.headers['content-length']).toBe('4')
    expect((await fetchFile('report.txt', { range: 'bytes=-3' })).text).toBe('789')
    expect((await fetchFile('report.txt', { range: 'bytes=0-1,4-5' })).status).toBe(200)
    const past = await fetchFile('report.txt', { range: 'bytes=10-' })
    expect([past.status, past.headers['content-range']]).toEqual([416, 'bytes */10'])
    const middle = await fetchFile('big.bin', { range: `bytes=${MIB}-${2 * MIB - 1}` })
    expect(middle.body.equals(big.subarray(MIB, 2 * MIB))).toBe(true)
  })

  it('come as a whole when they are another version than the part before', async () => {
    const etag = `"${sha256('0123456789')}"`
    expect((await fetchFile('report.txt', { range: 'bytes=0-1', 'if-range': etag })).status).toBe(206)
    expect((await fetchFile('report.txt', { range: 'bytes=0-1', 'if-range': '"other"' })).status).toBe(200)
  })

  it('are not sent again to who has them', async () => {
    const etag = `"${sha256('0123456789')}"`
    for (const header of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const answer = await fetchFile('report.txt', { 'if-none-match': header })
      expect([header, answer.status, answer.text]).toEqual([header, 304, ''])
    }
    expect((await fetchFile('report.txt', { 'if-none-match': '"x"' })).status).toBe(200)
  })

  it('return their size for HEAD', async () => {
    const head = await fetchFile('big.bin', {}, 'HEAD')
    expect([head.status, head.headers['content-length'], head.body.length]).toEqual([
      200,
      String(big.length),
      0,
    ])
    const part = await fetchFile('big.bin', { range: 'bytes=0-9' }, 'HEAD')
    expect([part.status, part.headers['content-length']]).toEqual([206, '10'])
  })

  it.each([
    '../../../etc/passwd',
    '..%2f..%2f..%2fetc%2fpasswd',
    '%2e%2e/%2e%2e/etc/passwd',
    '....//etc/passwd',
    '%2fetc%2fpasswd',
    'report.txt/',
    './report.txt%00.png',
    '%c0%ae%c0%ae/x',
    '%zz',
    'dist//app.js',
    'dist/./app.js%2f..',
    'REPORT.TXT',
    '',
    'dist',
  ])('are found by their exact name only, not by %j', async path => {
    const answer = await fetchFile(path)
    expect([400, 404]).toContain(answer.status)
    expect(answer.json()).toMatchObject({ error: { message: expect.any(String) } })
  })

  it('of another job are not found', async () => {
    const other = await control.finished()
    expect((await control.socket(`/api/jobs/${other}/artifacts/report.txt`)).status).toBe(404)
  })

  it.skipIf(!existsSync('/proc/self/fd'))(
    'let go of the file when the client leaves, early or late',
    async () => {
      const path = `/api/jobs/${id}/artifacts/big.bin`
      for (let i = 0; i < 60; i++) {
        const abort = new AbortController()
        const leaving = control.socket({ path, signal: abort.signal }).catch(() => 'left')
        await setTimeout(i / 20)
        abort.abort()
        await leaving
      }
      await vi.waitFor(() => expect(openBlobs()).toEqual([]), { timeout: 10_000 })
      expect((await fetchFile('big.bin')).body.length).toBe(big.length)
    },
  )
})

/** Stored files that this process, and so the daemon in it, holds open. */
const openBlobs = (): string[] =>
  readdirSync('/proc/self/fd')
    .map(fd => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`)
      } catch {
        return ''
      }
    })
    .filter(target => target.includes('/blobs/'))

describe('a stored file that is gone from the disk', () => {
  it('is reported as a server error before the download begins, and affects nothing else', async () => {
    const content = 'soon gone'
    const job = await control.finished({ 'gone.txt': content, 'kept.txt': 'kept' })
    const sha = sha256(content)
    rmSync(join(control.home.stateDir, 'blobs', sha.slice(0, 2), sha))
    const answer = await control.socket(`/api/jobs/${job}/artifacts/gone.txt`)
    expect([answer.status, answer.json()]).toMatchObject([500, { error: { code: 'internal' } }])
    expect((await control.socket(`/api/jobs/${job}/artifacts/kept.txt`)).text).toBe('kept')
    expect(control.errors.splice(0)).toHaveLength(1)
  })
})

describe('the patch', () => {
  it('is downloaded as a separate file', async () => {
    const answer = await control.socket(`/api/jobs/${id}/patch`)
    expect([answer.status, answer.text]).toEqual([200, 'diff --git a/x b/x\n'])
    expect(answer.headers['content-disposition']).toContain(`${id}.patch`)
  })

  it('of a job without one is not found', async () => {
    const other = await control.finished()
    expect((await control.socket(`/api/jobs/${other}/patch`)).status).toBe(404)
  })
})

describe('raw output', () => {
  it('is the bytes of both streams, from a cursor on, up to a size', async () => {
    const job = await control.finished({}, 'hello world\n')
    const whole = await control.socket(`/api/jobs/${job}/output?raw=1`)
    expect([whole.status, whole.text, whole.headers['x-content-type-options']]).toEqual([
      200,
      'hello world\n',
      'nosniff',
    ])
    expect((await control.socket(`/api/jobs/${job}/output?raw=true&cursor=6&max_bytes=3`)).text).toBe('wor')
    expect((await control.socket(`/api/jobs/${job}/output?raw=1&cursor=-6`)).text).toBe('world\n')
  })

  it('of a running job is what there is now', async () => {
    const { id: job, playing } = await control.job()
    await playing.print(Buffer.of(0, 255, 10))
    expect((await control.socket(`/api/jobs/${job}/output?raw=1`)).body).toEqual(Buffer.of(0, 255, 10))
    playing.exit(0)
  })
})

describe('a page of output', () => {
  it('brings text, streams, gaps and the next cursor', async () => {
    const { id: job, playing } = await control.job()
    await playing.print('out\n')
    await playing.print('err\n', 'stderr')
    const page = (await control.socket(`/api/jobs/${job}/output`)).json()
    expect(page).toMatchObject({
      job_id: job,
      status: 'running',
      pieces: [
        { stream: 'stdout', offset: 0, text: 'out\n' },
        { stream: 'stderr', offset: 4, text: 'err\n' },
      ],
      next_cursor: 8,
      done: false,
    })
    const waiting = control.socket(`/api/jobs/${job}/output?cursor=8&wait_seconds=20`)
    await playing.print('more')
    expect((await waiting).json()).toMatchObject({ pieces: [{ text: 'more' }], next_cursor: 12 })
    playing.exit(0)
  })
})

describe('uploads', () => {
  const upload = (body: Buffer | AsyncIterable<Uint8Array>) =>
    control.socket({ method: 'PUT', path: '/api/blobs', body })

  it('are stored under their sha256', async () => {
    const answer = await upload(big.subarray(0, MIB))
    expect(answer.status).toBe(201)
    expect(answer.json()).toEqual({ sha256: sha256(big.subarray(0, MIB)), size: MIB })
  })

  it('may be empty and may come without a length', async () => {
    expect((await upload(Buffer.alloc(0))).json()).toMatchObject({ size: 0, sha256: sha256('') })
    async function* pieces(): AsyncGenerator<Uint8Array> {
      for (let i = 0; i < 20; i++) yield Buffer.from('piece')
    }
    expect((await upload(pieces())).json()).toMatchObject({ size: 100, sha256: sha256('piece'.repeat(20)) })
  })

  it('that are too large are refused, declared or not', async () => {
    expect((await upload(big)).status).toBe(413)
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (let i = 0; i < 64; i++) yield Buffer.alloc(MIB / 4)
    }
    expect((await upload(endless())).status).toBe(413)
  })

  it('logged no defect in all of this', () => {
    expect(control.errors).toEqual([])
  })
})
