import { z } from 'zod'
import { AppError } from '../../../../jobs/errors.ts'
import { isRecord } from '../../../../jobs/records.ts'
import { isUpid } from '../../../../proxmox/upid.ts'
import { changes, defineTool, type Tool } from '../../../tool.ts'
import { type CallSession, openCallSession } from '../call-session.ts'
import { fromJsonText } from '../input-schema.ts'
import { withConfirmation } from '../mcp-tool.ts'
import { checkParams, type Operation, parsePath, showPath } from '../policy/api-operation.ts'
import { secretNote } from '../run-tool.ts'
import type { ProxmoxService } from '../service.ts'
import { type Json, plain } from '../shape/fields.ts'
import { toPage } from '../shape/result-page.ts'
import { toText } from '../shape/text-lines.ts'
import { methodSchema } from './methods.ts'

const input = z.strictObject({
  path: z.string().min(1).max(1000).describe('e.g. nodes/pve1/qemu/100/status/start'),
  method: methodSchema.optional().describe('default GET'),
  data: z.preprocess(fromJsonText, z.record(z.string(), z.unknown())).optional(),
  wait: z.int().min(0).max(50).optional().describe('seconds for the task'),
  filter: z.string().max(512).optional(),
  fields: z.string().max(512).optional(),
  limit: z.int().min(1).max(500).optional(),
  cursor: z.string().max(64).optional(),
  plan_token: z.string().max(200).optional(),
})

export const apiCall = (service: ProxmoxService): Tool =>
  defineTool({
    name: 'proxmox_api_call',
    title: 'Call the Proxmox API',
    description:
      'Any operation of the Proxmox API. Changes need PROXMOX_ALLOW_ELEVATED; destructive ones the user.',
    annotations: changes({ destructive: true, idempotent: false, openWorld: true }),
    input,
    run: async (args, context) =>
      withConfirmation(
        context,
        args,
        async caller => {
          const operation: Operation = {
            method: args.method ?? 'GET',
            segments: parsePath(args.path),
            params: checkParams(args.data ?? {}),
          }
          await check(service, operation, caller.signal)
          const session = openCallSession(service, { ...caller, action: operation.method })
          const answer = await present(await session.send(operation), operation, args, session)
          return session.secretFiles.length === 0 ? answer : { ...answer, ...secretNote(session.secretFiles) }
        },
        'proxmox_api_call',
      ),
  })

/** Reports mistakes before anything is sent. Uncertain problems are left to the host to check. */
const check = async ({ api }: ProxmoxService, operation: Operation, signal: AbortSignal) => {
  const catalogue = await api.catalogue({ signal }).catch(() => undefined)
  const problems = catalogue?.check(operation.method, catalogPath(operation), operation.params) ?? []
  const errors = problems.filter(problem => problem.severity === 'error')
  if (errors.length === 0) return
  const listed = errors.slice(0, 6).map(({ param, problem }) => (param ? `'${param}' ${problem}` : problem))
  throw new AppError('invalid', `${operation.method} ${showPath(operation)}: ${listed.join('; ')}.`, {
    hint: `proxmox_api_describe {"path":"${showPath(operation).slice(1)}","method":"${operation.method}"} lists its parameters.`,
  })
}

/** Encodes slashes within a segment, because the catalogue splits the path at slashes. */
const catalogPath = ({ segments }: Operation) =>
  `/${segments.map(segment => segment.replaceAll('/', '%2F')).join('/')}`

const present = async (
  data: unknown,
  operation: Operation,
  args: z.output<typeof input>,
  session: CallSession,
): Promise<Record<string, Json>> => {
  if (isUpid(data)) return plain(await session.awaitTask(data, args.wait ?? 0)) as Record<string, Json>
  const upid = taskOf(operation)
  if (upid && args.wait) return plain(await session.awaitTask(upid, args.wait)) as Record<string, Json>
  if (Array.isArray(data)) return toPage(data, [], args)
  if (isRecord(data)) return { data: plain(data) }
  return typeof data === 'string' && data.length > 200
    ? toText(data)
    : { data: plain(data), ...(data === null && { ok: true }) }
}

/** With `wait`, reading the status of a task waits for it: so tasks can be followed with this tool alone. */
const taskOf = ({ method, segments }: Operation): string | undefined =>
  method === 'GET' && segments[2] === 'tasks' && segments[4] === 'status' ? segments[3] : undefined
