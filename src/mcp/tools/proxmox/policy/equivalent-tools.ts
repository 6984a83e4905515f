import type { Tool } from '../table/define-row.ts'
import { TABLE } from '../table/toolset-table.ts'
import type { Operation } from './api-operation.ts'

export interface Name {
  readonly tool: string
  readonly action: string
}

/**
 * The names a call goes by. A rule that forbids a tool would be idle talk if the raw call, or an older name, could
 * still do the same; so those also go by the names of every action with the same operation.
 */
export const equivalentNames = (called: Name, operation: Operation): Name[] => {
  const curated = TABLE.flatMap(({ tools }) => tools)
  if (curated.some(tool => tool.name === called.tool)) return [called]
  return [called, ...curated.flatMap(tool => actionsOf(tool, operation))]
}

const actionsOf = (tool: Tool, operation: Operation): Name[] =>
  Object.entries(tool.actions)
    .filter(
      ([, row]) =>
        row.method === operation.method &&
        isAt(tool, row.path, operation) &&
        presetFits(row.preset, operation),
    )
    .map(([action]) => ({ tool: tool.name, action }))

const isAt = (tool: Tool, path: string, { segments }: Operation): boolean => {
  const parts = path.split('/').filter(Boolean)
  return parts.length === segments.length && parts.every((part, index) => fits(tool, part, segments[index]!))
}

/** `{type}` is qemu or lxc and nothing else, or a guest would be taken for an interface. */
const fits = (tool: Tool, part: string, segment: string): boolean => {
  if (!part.startsWith('{')) return part === segment
  const param = tool.params[part.slice(1, -1)]
  if (!param) return false
  if (param.values) return param.values.map(value => param.wire?.[value] ?? value).includes(segment)
  if (param.type === 'integer') return /^\d+$/.test(segment)
  return param.pattern?.test(segment) ?? true
}

/** `command=reboot` tells two actions of one path apart; what is only a default does not. */
const presetFits = (preset: Readonly<Record<string, string>>, { params }: Operation): boolean =>
  Object.entries(preset).every(([key, value]) => params[key] === undefined || String(params[key]) === value)
