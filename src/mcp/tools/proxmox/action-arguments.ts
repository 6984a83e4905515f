import { AppError } from '../../../jobs/errors.ts'
import { didYouMean } from '../../../jobs/nearest.ts'
import { ownProperty } from '../../../jobs/own-property.ts'
import { isRecord } from '../../../jobs/records.ts'
import { parseUpid } from '../../../proxmox/upid.ts'
import type { GuestIndex } from './guest-index.ts'
import type { Args } from './row-context.ts'
import type { Param } from './table/common-params.ts'
import { pathParams, type Row, type Tool } from './table/define-row.ts'

/** Arguments that every tool accepts. */
const CONTROL = ['action', 'plan_token'] as const

export const chooseRow = (tool: Tool, args: Args): { action: string; row: Row } => {
  const action = typeof args.action === 'string' ? args.action : ''
  const row = ownProperty(tool.actions, action)
  if (row) return { action, row }
  const names = Object.keys(tool.actions)
  throw new AppError('invalid', `${tool.name} has no action '${action}'${didYouMean(action, names)}`, {
    hint: `Actions: ${names.join(', ')}.`,
  })
}

/** Checks for missing and unknown arguments of the action. */
export const checkRow = (tool: Tool, action: string, row: Row, args: Args): void => {
  const call = action ? `${tool.name} ${action}` : tool.name
  const takes = [...row.required, ...row.optional]
  const missing = row.required.filter(name => args[name] === undefined)
  if (missing.length > 0) {
    throw new AppError('invalid', `${call} needs ${missing.map(name => `'${name}'`).join(', ')}.`, {
      hint: usage(call, row),
    })
  }
  const given = Object.keys(args).filter(name => args[name] !== undefined)
  const foreign = given.filter(name => !takes.includes(name) && !CONTROL.some(control => control === name))
  if (foreign.length > 0) {
    throw new AppError('invalid', `${call} does not take ${foreign.map(name => `'${name}'`).join(', ')}.`, {
      hint: usage(call, row),
    })
  }
  const changes = changesOf(action, row)
  if (changes.length > 0 && !changes.some(name => args[name] !== undefined)) {
    throw new AppError('invalid', `${call} was given nothing to change.`, {
      hint: `Give one of ${changes.join(', ')}.`,
    })
  }
}

/** Refuses arguments of the other kind of guest: Proxmox only answers that the parameter is unknown. */
export const checkGuestKind = (tool: Tool, args: Args, type: unknown): void => {
  const kind = type === 'qemu' ? 'vm' : type
  if (kind !== 'vm' && kind !== 'lxc') return
  const wrong = Object.keys(args).find(name => {
    const only = tool.params[name]?.only
    return args[name] !== undefined && only !== undefined && only !== kind
  })
  if (wrong === undefined) return
  const [has, is] = kind === 'vm' ? ['containers', 'a VM'] : ['VMs', 'a container']
  throw new AppError('invalid', `'${wrong}' is for ${has} only, and this guest is ${is}.`, {
    hint: `Leave '${wrong}' out.`,
  })
}

/** The optional arguments that change something; empty for an action that changes without them. */
export const changesOf = (action: string, row: Row): string[] => {
  const isUpdate = row.method === 'PUT' && (action.startsWith('update') || action.startsWith('set_'))
  // The id of a pool is in the body, not in the path.
  const names = [...pathParams(row.path), 'poolid']
  if (!isUpdate || row.required.some(name => !names.includes(name))) return []
  return row.optional.filter(name => !['node', 'type', 'digest', 'wait', 'append'].includes(name))
}

const usage = (call: string, row: Row): string => {
  const optional = row.optional.length > 0 ? ` [${row.optional.join(', ')}]` : ''
  return `${call} takes ${row.required.join(', ') || 'nothing else'}${optional}.`
}

/** Arguments with the names and values of the API. Path values are separate, because a parameter can have the same name. */
export interface Values {
  readonly place: Args
  readonly params: Args
}

export const toApi = (tool: Tool, row: Row, args: Args): Values => {
  const names = [...row.required, ...row.optional]
  const inPath = pathParams(row.path)
  const place: Record<string, unknown> = {}
  const params: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(row.preset))
    (inPath.includes(name) ? place : params)[name] = value
  for (const name of names) {
    const value = args[name]
    const param = tool.params[name]!
    if (value === undefined) continue
    if (param.spread)
      addSpread(
        params,
        name,
        value,
        names.map(one => apiName(tool, one)),
      )
    else if (inPath.includes(name)) place[name] = onWire(param, value)
    else params[param.api ?? name] = onWire(param, value)
  }
  return { place, params }
}

/** Adds the entries of an object argument. They must not override other arguments, such as the VMID. */
const addSpread = (
  values: Record<string, unknown>,
  name: string,
  value: unknown,
  taken: readonly string[],
) => {
  for (const [key, inner] of Object.entries(isRecord(value) ? value : {})) {
    if (taken.includes(key))
      throw new AppError('invalid', `Pass '${key}' as a separate argument, not inside '${name}'.`)
    values[key] = inner
  }
}

const apiName = (tool: Tool, name: string) => tool.params[name]?.api ?? name

const onWire = (param: Param, value: unknown): unknown =>
  typeof value === 'string' ? (ownProperty(param.wire ?? {}, value) ?? value) : value

/** Fills in missing node and type: from the VMID through the guest index, or from the UPID. */
export const locate = async (
  row: Row,
  { place, params }: Values,
  guests: GuestIndex,
  signal: AbortSignal,
): Promise<Values> => {
  const wanted = pathParams(row.path)
  const typeInPath = wanted.includes('type')
  const wantsType = typeInPath
    ? place.type === undefined
    : row.optional.includes('type') && params.type === undefined
  const wantsNode = wanted.includes('node') && place.node === undefined
  if (wantsNode && place.upid !== undefined)
    return { params, place: { ...place, node: parseUpid(String(place.upid)).node } }
  const vmid = place.vmid ?? params.vmid
  if (!(wantsType || wantsNode) || vmid === undefined || !row.required.includes('vmid'))
    return { place, params }
  const guest = await guests.need(Number(vmid), signal)
  const found = {
    ...place,
    ...(wantsNode && { node: guest.node }),
    ...(typeInPath && wantsType && { type: guest.type }),
  }
  return { place: found, params: wantsType && !typeInPath ? { ...params, type: guest.type } : params }
}
