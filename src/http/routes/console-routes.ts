import { z } from 'zod'
import { AppError } from '../../jobs/errors.ts'
import { readBody, readJson } from '../body.ts'
import type { ConsoleSessions } from '../console-sessions.ts'
import type { ControlDeps } from '../deps.ts'
import { json } from '../respond.ts'
import { type Route, route } from '../route.ts'

const codeSchema = z.looseObject({
  url: z
    .string()
    .describe('The console, with the code in the fragment (after #), which browsers do not send'),
  expires_at: z.iso.datetime(),
})

const sessionSchema = z.looseObject({
  session: z.string().describe('Used as a bearer token'),
  expires_at: z.iso.datetime(),
})

const askSchema = z.strictObject({
  may_approve: z
    .boolean()
    .default(false)
    .describe('Let the session approve calls; only for a user at a terminal'),
})

const loginSchema = z.strictObject({ code: z.string().min(1).max(200) })

export const consoleRoutes = (
  sessions: ConsoleSessions,
  { daemon }: Pick<ControlDeps, 'daemon'>,
): Route[] => [
  route({
    method: 'POST',
    path: '/api/console/codes',
    tag: 'console',
    summary: 'Make a code that logs a browser in once; on the Unix socket only',
    body: { description: 'Optional: the rights of the session', type: 'application/json', schema: askSchema },
    responses: { 201: { description: 'The address to open', schema: codeSchema } },
    handle: async call => {
      if (call.env.listener !== 'socket')
        throw new AppError('denied', 'A code for the console is made on the Unix socket only.', {
          hint: 'Run deputy open on the computer where the daemon runs.',
        })
      const url = daemon.url()
      if (url === null)
        throw new AppError('unsupported', 'The daemon has no HTTP listener, so there is no console.', {
          hint: 'Set http.enabled to true, then run deputy daemon restart.',
        })
      const { may_approve: mayApprove } = await readBody(call, askSchema, 1024)
      const { secret, expiresAt } = sessions.newCode({ mayApprove })
      return json({ url: `${reachable(url)}/#code=${secret}`, expires_at: iso(expiresAt) }, 201)
    },
  }),

  route({
    method: 'POST',
    path: '/api/console/sessions',
    tag: 'console',
    open: true,
    summary: 'Exchange a code for a session of the console; needs no token',
    body: { description: 'The code', type: 'application/json', schema: loginSchema },
    responses: { 201: { description: 'The session', schema: sessionSchema } },
    handle: async call => {
      const parsed = loginSchema.safeParse(await readJson(call, 1024))
      const session = parsed.success ? sessions.redeem(parsed.data.code) : undefined
      if (session === undefined)
        throw new AppError('unauthorized', 'The login code is used, expired or unknown.', {
          hint: 'Run deputy open again.',
        })
      return json({ session: session.secret, expires_at: iso(session.expiresAt) }, 201)
    },
  }),
]

/** Replaces 0.0.0.0 and [::], which are not valid Host names, with the loopback address. */
const reachable = (url: string): string => url.replace(/\/\/(0\.0\.0\.0|\[::\])(?=:|$)/, '//127.0.0.1')

const iso = (ms: number): string => new Date(ms).toISOString()
