import { AppError } from '../../jobs/errors.ts'
import { createConsoleAssets } from '../console-assets.ts'
import { type Call, type Route, route } from '../route.ts'

/**
 * Scripts and styles from here alone, requests to here alone, and no page may frame this one and make its user
 * click. Pictures and pages that a job left are shown from memory (blob:).
 */
const HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' blob:",
    'frame-src blob:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  vary: 'accept-encoding',
} as const

/** The console. It is open because it holds nothing: its script logs in and asks for everything it shows. */
export const webRoutes = (): Route[] => {
  const assets = createConsoleAssets()

  const serve = async ({ request }: Call, name: string, cacheControl: string): Promise<Response> => {
    const asset = await assets(name)
    if (asset === undefined)
      throw new AppError('not_found', `The console has no file '${name.slice(0, 60)}'.`, {
        hint: 'In a checkout, run npm run build.',
      })
    const headers = {
      ...HEADERS,
      'content-type': asset.type,
      'cache-control': cacheControl,
      etag: asset.etag,
    }
    if (request.headers.get('if-none-match') === asset.etag)
      return new Response(null, { status: 304, headers })
    const { bytes, encoding } = await asset.body(request.headers.get('accept-encoding') ?? '')
    return new Response(Buffer.from(bytes), {
      headers: { ...headers, ...(encoding !== undefined && { 'content-encoding': encoding }) },
    })
  }

  return [
    route({
      method: 'GET',
      path: '/',
      tag: 'console',
      open: true,
      summary: 'The console',
      responses: { 200: { description: 'HTML', type: 'text/html' } },
      handle: call => serve(call, 'index.html', 'no-cache'),
    }),
    route({
      method: 'GET',
      path: '/web/{path}',
      tag: 'console',
      open: true,
      summary: 'Style sheets and scripts of the console; their names contain a content hash',
      responses: { 200: { description: 'CSS or JavaScript', type: 'text/javascript' } },
      handle: call => serve(call, call.params.path ?? '', 'public, max-age=31536000, immutable'),
    }),
  ]
}
