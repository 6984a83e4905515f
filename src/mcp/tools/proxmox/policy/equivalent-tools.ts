import type { Tool } from '../table/define-row.ts'
import { TABLE } from '../table/toolset-table.ts'
import type { Operation } from './api-operation.ts'

export interface Name {
  readonly tool: string
  readonly action: string
}

/**
 * The tool names that rules are matched against. A rule that forbids a tool must also forbid the raw call and the alias
 * tools that do the same, so those also get the names of every action with the same operation.
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

/** Checks the value too: `{type}` matches only qemu and lxc, so that `network` is not taken for a guest type. */
const fits = (tool: Tool, part: string, segment: string): boolean => {
  if (!part.startsWith('{')) return part === segment
  const param = tool.params[part.slice(1, -1)]
  if (!param) return false
  if (param.values) return param.values.map(value => param.wire?.[value] ?? value).includes(segment)
  if (param.type === 'integer') return /^\d+$/.test(segment)
  return param.pattern?.test(segment) ?? true
}

/** Distinguishes actions with the same path by their preset, such as `command=reboot`. Absent parameters match. */
const presetFits = (preset: Readonly<Record<string, string>>, { params }: Operation): boolean =>
  Object.entries(preset).every(([key, value]) => params[key] === undefined || String(params[key]) === value)
