import { parseUpid } from '../../../../proxmox/upid.ts'
import type { Args, Composite, RowContext } from '../row-context.ts'
import { item, items, text, without } from './values.ts'

const place = (args: Args) => {
  const { upid, node, type, id, user } = parseUpid(String(args.upid))
  return { upid, node, about: { type, id, user } }
}

const tail = async (args: Args, { call }: RowContext, limit: number): Promise<string[]> => {
  const { node, upid } = place(args)
  const lines = items(await call('GET /nodes/{node}/tasks/{upid}/log', { node, upid, limit: 0 }))
  return lines.map(line => text(line, 't') ?? '').slice(-limit)
}

/** Without `limit`, Proxmox returns only fifty tasks. */
export const listTasks: Composite = (args, { call }) =>
  call('GET /nodes/{node}/tasks', { ...without(args), limit: 500 })

/** Combines status and log, which are two requests. */
export const taskReport: Composite = async (args, context) => {
  const { node, upid, about } = place(args)
  const status = item(await context.call('GET /nodes/{node}/tasks/{upid}/status', { node, upid }))
  return {
    upid,
    node,
    ...about,
    state: stateOf(status),
    exitstatus: text(status, 'exitstatus') ?? null,
    log: await tail(args, context, 15),
  }
}

export const taskLog: Composite = async (args, context) => tail(args, context, Number(args.limit ?? 100))

export const waitForTask: Composite = async (args, context) => {
  const { upid, node, about } = place(args)
  // The first request passes the gate; the polls repeat it and need not.
  await context.call('GET /nodes/{node}/tasks/{upid}/status', { node, upid })
  return { ...about, ...(await context.awaitTask(upid, Number(args.timeout ?? 45))) }
}

export const abortTask: Composite = (args, { call }) => {
  const { node, upid } = place(args)
  return call('DELETE /nodes/{node}/tasks/{upid}', { node, upid })
}

const stateOf = (status: Args): string => {
  if (text(status, 'status') !== 'stopped') return 'running'
  const exit = text(status, 'exitstatus') ?? ''
  if (exit === 'OK') return 'ok'
  return exit.startsWith('WARNINGS') ? 'warnings' : 'failed'
}
