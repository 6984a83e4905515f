import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Control, startControl } from '../../support/http/control.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.close())

const assetNames = async (): Promise<string[]> =>
  [...(await control.tcp('/')).text.matchAll(/(?:src|href)="(\/web\/[^"]+)"/g)].map(match => match[1]!)

it('is served without a token, and holds none', async () => {
  const page = await control.tcp('/')
  expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
  expect(page.text).not.toContain(control.tokens.full)
  expect(page.headers['cache-control']).toBe('no-cache')
})

it('has parts whose names change with their content, so that browsers may keep them', async () => {
  const names = await assetNames()
  expect(new Set(names.map(name => name.split('.').at(-1)))).toEqual(new Set(['css', 'js', 'svg']))
  for (const name of names) {
    expect(name).toMatch(/-[\w-]{8,}\.(js|css|svg)$/)
    const { status, headers } = await control.tcp(name)
    expect([status, headers['cache-control']]).toEqual([200, 'public, max-age=31536000, immutable'])
    const known = await control.tcp({ path: name, headers: { 'if-none-match': String(headers.etag) } })
    expect(known.status).toBe(304)
  }
})

it('loads with less than 150 KB, compressed', async () => {
  let sum = 0
  for (const path of ['/', ...(await assetNames())]) {
    const plain = await control.tcp(path)
    const gzip = await control.tcp({ path, headers: { 'accept-encoding': 'gzip, deflate' } })
    const brotli = await control.tcp({ path, headers: { 'accept-encoding': 'gzip, deflate, br' } })
    expect([gzip.headers['content-encoding'], brotli.headers['content-encoding']]).toEqual(['gzip', 'br'])
    expect(gunzipSync(gzip.body).toString()).toBe(plain.text)
    expect(brotliDecompressSync(brotli.body).toString()).toBe(plain.text)
    sum += gzip.body.length
  }
  expect(sum).toBeLessThan(150_000)
})

it('lets no other site run in it, frame it or be asked by it', async () => {
  const { headers, text } = await control.tcp('/')
  const policy = String(headers['content-security-policy'])
  for (const rule of [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ])
    expect(policy).toContain(rule)
  expect(policy).not.toContain('unsafe')
  expect(headers['x-frame-options']).toBe('DENY')
  // The policy forbids both, so the page must not use them.
  expect(text).not.toMatch(/<script>|style="|onclick=|https?:/)
})

it('is refused under a foreign name', async () => {
  expect((await control.tcp({ path: '/', headers: { host: 'evil.example' } })).status).toBe(403)
})

it.each([
  '/web/',
  '/web/missing.js',
  '/web/..%2fhttp%2fapp.js',
  '/web/%2e%2e/%2e%2e/package.json',
  '/web/../../package.json',
  '/web/main.js%00.css',
  '/web/.js',
  '/web/main.tsx',
])('serves its own parts and nothing else: not %s', async path => {
  const answer = await control.tcp({ path, headers: { authorization: `Bearer ${control.tokens.full}` } })
  expect(answer.status).toBe(404)
})
