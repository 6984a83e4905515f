import { isUpid } from '../../../proxmox/upid.ts'
import { checkGuestKind, checkRow, chooseRow, locate, toApi } from './action-arguments.ts'
import { type CallSession, openCallSession } from './call-session.ts'
import { bind } from './policy/api-operation.ts'
import type { Caller } from './policy/gate.ts'
import type { Args } from './row-context.ts'
import type { ProxmoxService } from './service.ts'
import { type AnswerQuery, formatAnswer } from './shape/answer-format.ts'
import { type Json, plain } from './shape/fields.ts'
import { WAIT_DEFAULT_S } from './table/common-params.ts'
import type { Row, Tool } from './table/define-row.ts'

export type Answer = Record<string, Json>

/** Runs one action of a tool. Every row of the table runs this way. */
export const runTool = async (
  service: ProxmoxService,
  tool: Tool,
  args: Args,
  caller: Caller,
): Promise<Answer> => {
  const { action, row } = chooseRow(tool, args)
  checkRow(tool, action, row, args)
  const session = openCallSession(service, { ...caller, action })
  const { place, params } = await locate(row, toApi(tool, row, args), service.guests, caller.signal)
  checkGuestKind(tool, args, place.type ?? params.type)
  const data = row.run
    ? await row.run(withoutView({ ...params, ...place }), session)
    : await session.send(bind(row.method, row.path, place, sendable(tool, params)))
  const answer = await present(row, data, args, session)
  return session.secretFiles.length === 0 ? answer : { ...answer, ...secretNote(session.secretFiles) }
}

/** Removes the parameters that the tool uses itself. */
const sendable = (tool: Tool, values: Args): Args =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !tool.params[name]?.local))

const VIEW = ['wait', 'filter', 'fields', 'cursor', 'points']
const withoutView = (values: Args): Args =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !VIEW.includes(name)))

const present = async (row: Row, data: unknown, args: Args, session: CallSession): Promise<Answer> => {
  if (row.format.kind === 'task') {
    if (isUpid(data)) return plain(await session.awaitTask(data, seconds(args.wait))) as Answer
    // Some actions finish at once and start no task.
    return data === null || data === undefined || data === ''
      ? { ok: true }
      : formatAnswer(anything(data), data, queryOf(args))
  }
  return formatAnswer(row.format, data, queryOf(args))
}

const anything = (data: unknown) => ({
  kind: Array.isArray(data) ? ('rows' as const) : ('record' as const),
  fields: [],
})

const queryOf = (args: Args): AnswerQuery => ({
  filter: textOf(args.filter),
  fields: textOf(args.fields),
  cursor: textOf(args.cursor),
  limit: typeof args.limit === 'number' ? args.limit : undefined,
  points: typeof args.points === 'number' ? args.points : undefined,
  peak: args.cf === 'MAX',
})

const seconds = (wait: unknown): number => (typeof wait === 'number' ? wait : WAIT_DEFAULT_S)
const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)
export const secretNote = (files: readonly string[]): Answer => ({
  withheld: 'Secrets of this answer are in a file that only the user can read; tell the user its path.',
  secret_file: files.length === 1 ? files[0]! : [...files],
})
