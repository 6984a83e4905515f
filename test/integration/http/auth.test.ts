import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../../src/jobs/ids.ts'
import { type Control, startControl } from '../../support/http/control.ts'
import { raw } from '../../support/http/raw.ts'

let control: Control
const seen: { readOnly: boolean }[] = []
beforeAll(async () => {
  control = await startControl({
    allowedHosts: ['deputy.example'],
    mcp: (_, caller) => {
      seen.push(caller)
      return new Response('{}')
    },
  })
})
afterAll(() => control.close())

type Who = 'full' | 'read' | 'wrong' | 'none'

const bearer = (who: Who): Record<string, string> => {
  if (who === 'none') return {}
  const token = who === 'wrong' ? `${control.tokens.full.slice(0, -1)}!` : control.tokens[who]
  return { authorization: `Bearer ${token}` }
}

const post = { method: 'POST', path: '/api/jobs', body: '{"task": "x"}' }
const get = { method: 'GET', path: '/api/jobs' }
const remove = { method: 'DELETE', path: `/api/jobs/${newId()}` }
const cancel = { method: 'POST', path: `/api/jobs/${newId()}/cancel` }
const upload = { method: 'PUT', path: '/api/blobs', body: 'x' }
const stop = { method: 'POST', path: '/api/daemon/stop', body: '{}' }

describe('on the Unix socket', () => {
  it.each<Who>(['full', 'read', 'wrong', 'none'])(
    'a request with the token "%s" has full rights',
    async who => {
      expect((await control.socket({ ...get, headers: bearer(who) })).status).toBe(200)
      expect((await control.socket({ ...post, headers: bearer(who) })).status).toBe(201)
    },
  )

  it('any Host and Origin will do', async () => {
    const headers = { host: 'evil.example', origin: 'http://evil.example' }
    expect((await control.socket({ ...post, headers })).status).toBe(201)
  })
})

describe('on TCP', () => {
  it.each<[Who, number, number, number, number, number, number]>([
    //        GET  POST DELETE cancel upload stop
    ['full', 200, 201, 404, 404, 201, 202],
    ['read', 200, 403, 403, 403, 403, 403],
    ['wrong', 401, 401, 401, 401, 401, 401],
    ['none', 401, 401, 401, 401, 401, 401],
  ])('the token "%s" gets what it may', async (who, ...expected) => {
    const statuses: number[] = []
    for (const asked of [get, post, remove, cancel, upload, stop])
      statuses.push((await control.tcp({ ...asked, headers: bearer(who) })).status)
    expect(statuses).toEqual(expected)
  })

  it('a refusal says what to send', async () => {
    const answer = await control.tcp(get)
    expect(answer.headers['www-authenticate']).toMatch(/^Bearer/)
    expect(answer.json()).toMatchObject({
      error: { code: 'unauthorized', hint: expect.stringContaining('Bearer') },
    })
    expect(answer.text).not.toContain(control.tokens.full)
  })

  it.each([
    ['Basic', () => `Basic ${control.tokens.full}`],
    ['no scheme', () => control.tokens.full],
    ['two tokens', () => `Bearer ${control.tokens.full} ${control.tokens.full}`],
    ['an empty token', () => 'Bearer '],
    ['a prefix of the token', () => `Bearer ${control.tokens.full.slice(0, 10)}`],
    ['the token and more', () => `Bearer ${control.tokens.full}x`],
  ])('%s is no token', async (_, authorization) => {
    expect((await control.tcp({ ...get, headers: { authorization: authorization() } })).status).toBe(401)
  })

  it('the token does not travel in the address', async () => {
    expect((await control.tcp(`/api/jobs?token=${control.tokens.full}`)).status).toBe(401)
    expect((await control.tcp(`/api/jobs?access_token=${control.tokens.full}`)).status).toBe(401)
  })

  it('every route but /livez and the empty web page needs a token, unknown ones too', async () => {
    const paths = [
      '/api',
      '/api/nothing',
      '/readyz',
      '/metrics',
      '/openapi.json',
      '/mcp',
      '/sse',
      '/api/config',
      '/api/events/stream',
    ]
    for (const path of paths) expect([path, (await control.tcp(path)).status]).toEqual([path, 401])
    expect((await control.tcp('/livez')).status).toBe(200)
    expect((await control.tcp({ method: 'HEAD', path: '/livez' })).status).toBe(200)
    expect((await control.tcp({ method: 'POST', path: '/livez' })).status).toBe(401)
    expect((await control.tcp('/livez/../api/jobs')).status).toBe(401)
    expect((await control.tcp('//livez')).status).toBe(401)
    expect((await control.tcp('/%6civez')).status).not.toBe(500)
  })

  it('MCP reports that the token may only read', async () => {
    seen.length = 0
    for (const who of ['full', 'read'] as const)
      await control.tcp({ method: 'POST', path: '/mcp?toolsets=jobs', body: '{}', headers: bearer(who) })
    await control.socket({ method: 'POST', path: '/mcp', body: '{}' })
    expect(seen).toEqual([{ readOnly: false }, { readOnly: true }, { readOnly: false }])
  })

  it.each([
    ['a rebound name', { host: 'evil.example:8764' }],
    ['a rebound name that looks local', { host: '127.0.0.1.evil.example' }],
    ['another page', { origin: 'http://evil.example' }],
    ['a sandboxed page', { origin: 'null' }],
    ['a page of an extension', { origin: 'chrome-extension://abc' }],
    ['another page under an allowed host', { host: 'deputy.example', origin: 'https://evil.example' }],
  ])('%s is refused with a good token and without one', async (_, headers) => {
    for (const path of ['/api/jobs', '/livez', '/mcp', '/sse'])
      for (const token of [{}, bearer('full')]) {
        const answer = await control.tcp({ path, headers: { ...headers, ...token } })
        expect(answer.status).toBe(403)
        expect(answer.headers['access-control-allow-origin']).toBeUndefined()
      }
  })

  it.each([
    ['without a Host', 'GET /api/jobs HTTP/1.0\r\n'],
    ['with an empty Host', 'GET /api/jobs HTTP/1.1\r\nHost:\r\nConnection: close\r\n'],
    [
      'with two Hosts',
      'GET /api/jobs HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n',
    ],
    ['with a broken Host', 'GET /api/jobs HTTP/1.1\r\nHost: a b\\c\r\nConnection: close\r\n'],
    [
      'for another server',
      'GET http://evil.example/api/jobs HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n',
    ],
    ['with a backslash', 'GET /api\\jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'],
    ['that is no HTTP', 'hello\r\n'],
  ])('a request %s is refused, with a good token too', async (_, head) => {
    const answer = await raw(control.port, `${head}Authorization: Bearer ${control.tokens.full}\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1\.1 (400|403|404) /)
    expect(answer).not.toMatch(/"jobs"|\bat .*\.[jt]s|<html/i)
  })

  it('a preflight of another page gets no leave', async () => {
    const answer = await control.tcp({
      method: 'OPTIONS',
      path: '/api/jobs',
      headers: { origin: 'http://localhost:3000', 'access-control-request-method': 'POST' },
    })
    expect(answer.status).toBe(401)
    expect(Object.keys(answer.headers).filter(name => name.startsWith('access-control'))).toEqual([])
  })

  it('a reverse proxy of the configuration passes', async () => {
    const headers = { host: 'deputy.example', origin: 'https://deputy.example', ...bearer('full') }
    expect((await control.tcp({ ...get, headers })).status).toBe(200)
  })

  it('does not say whether a job exists without a token', async () => {
    const id = await control.finished()
    const known = await control.tcp(`/api/jobs/${id}`)
    const unknown = await control.tcp(`/api/jobs/${newId()}`)
    expect(known.text).toBe(unknown.text)
  })
})
