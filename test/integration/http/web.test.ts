import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Control, startControl } from '../../support/http/control.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.close())

it('is served without a token, and holds none', async () => {
  const page = await control.tcp('/')
  expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
  expect(page.text).not.toContain(control.tokens.full)
  expect((await control.tcp('/web/style.css')).headers['content-type']).toBe('text/css; charset=utf-8')
})

it('lets no other site run in it, frame it or be asked by it', async () => {
  const { headers, text } = await control.tcp('/')
  const policy = String(headers['content-security-policy'])
  for (const rule of [
    "default-src 'none'",
    "script-src 'self'",
    "connect-src 'self'",
    "frame-ancestors 'none'",
  ])
    expect(policy).toContain(rule)
  expect(policy).not.toContain('unsafe')
  expect(headers['x-frame-options']).toBe('DENY')
  // The policy forbids both, so the page must not use them.
  expect(text).not.toMatch(/<script>|style="|onclick=/)
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
  '/web/main.ts',
])('serves its own parts and nothing else: not %s', async path => {
  const answer = await control.tcp({ path, headers: { authorization: `Bearer ${control.tokens.full}` } })
  expect(answer.status).toBe(404)
})
