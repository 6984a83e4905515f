import { readFile } from 'node:fs/promises'
import { AppError } from '../../jobs/errors.ts'
import { type Route, route } from '../route.ts'
import { SHELL, STYLE } from '../web-shell.ts'

/** The compiled scripts of web/, beside the rest of the compiled product. */
const SCRIPTS = new URL('../../web/', import.meta.url)

/** Scripts from here alone, requests to here alone, and no page may frame this one and make its user click. */
const HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-cache',
} as const

/** The web page. It is open because it holds nothing: its script asks for the token. */
export const webRoutes = (): Route[] => [
  route({
    method: 'GET',
    path: '/',
    tag: 'web',
    open: true,
    summary: 'The web page',
    responses: { 200: { description: 'HTML', type: 'text/html' } },
    handle: () => page(SHELL, 'text/html; charset=utf-8'),
  }),
  route({
    method: 'GET',
    path: '/web/{path}',
    tag: 'web',
    open: true,
    summary: 'Its style and scripts',
    responses: { 200: { description: 'CSS or JavaScript', type: 'text/javascript' } },
    handle: async ({ params: { path = '' } }) =>
      path === 'style.css' ? page(STYLE, 'text/css; charset=utf-8') : script(path),
  }),
]

const page = (body: string, type: string): Response =>
  new Response(body, { headers: { ...HEADERS, 'content-type': type } })

const script = async (name: string): Promise<Response> => {
  const source = /^[a-z-]{1,40}\.js$/.test(name)
    ? await readFile(new URL(name, SCRIPTS), 'utf8').catch(() => undefined)
    : undefined
  if (source === undefined)
    throw new AppError('not_found', `There is no part '${name.slice(0, 60)}' of the web page.`)
  return page(source, 'text/javascript; charset=utf-8')
}
