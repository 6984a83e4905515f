import { z } from 'zod'
import { readBody } from '../body.ts'
import type { ControlDeps } from '../deps.ts'
import { jobId } from '../params.ts'
import { requireUser } from '../require-user.ts'
import { json } from '../respond.ts'
import { type Route, route } from '../route.ts'
import { terminalSize } from '../session-socket.ts'

const MAX_BODY = 256 * 1024

const text = z
  .string()
  .max(128 * 1024 - 1)
  .regex(/^[^\0]*$/)

const sessionSchema = z.strictObject({
  command: z.array(text).min(1).max(1000).describe('The program and its arguments'),
  env: z
    .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/), text)
    .exactOptional()
    .describe('More variables, such as TERM'),
  terminal: terminalSize.exactOptional().describe('Gives the program a terminal of this size'),
})

const ticketSchema = z.object({
  ticket: z.string().describe('Admits one WebSocket, at /api/sessions/TICKET'),
  expires_at: z.string(),
})

export const sessionRoutes = ({ deputy, sessions }: ControlDeps): Route[] => [
  route({
    method: 'POST',
    path: '/api/jobs/{id}/sessions',
    tag: 'sessions',
    summary:
      'Run a program in the machine of a running job, such as a shell in a terminal; on the socket or in the console only',
    body: { description: 'The program', type: 'application/json', schema: sessionSchema },
    responses: {
      201: { description: 'A ticket for a WebSocket to the program', schema: ticketSchema },
      409: { description: 'The job is not running' },
    },
    handle: async call => {
      // A session is outside the redaction of output and the command policy, and reads the secrets of its job.
      requireUser(call, 'Programs cannot be opened in a machine', 'deputy shell, deputy cp or deputy forward')
      const { command, env = {}, terminal } = await readBody(call, sessionSchema, MAX_BODY)
      const request = { argv: command, env, ...(terminal && { terminal }) }
      const session = await deputy.openSession(jobId(call), request, call.origin)
      const { ticket, expiresAt } = sessions.issue(session)
      return json({ ticket, expires_at: new Date(expiresAt).toISOString() }, 201)
    },
  }),
]
