import type { Row, Tool } from './table/define-row.ts'

/** A one-line description: the purpose, and the arguments of each action except those that all actions need. */
export const describeTool = (tool: Tool): string => {
  const actions = Object.entries(tool.actions)
  if (actions[0]?.[0] === '') return tool.about
  const rows = Object.values(tool.actions)
  const common = rows[0]!.required.filter(name => rows.every(row => row.required.includes(name)))
  return `${tool.about} ${actions.map(([action, row]) => action + takes(row, common)).join('; ')}`
}

/** With more optional arguments than this, only `…` is shown. */
const MAX_NAMED = 3
const OMITTED = new Set(['wait', 'filter', 'fields', 'limit', 'cursor', 'node', 'type', 'digest', 'delete'])

const takes = (row: Row, common: readonly string[]): string => {
  const optional = row.optional.filter(name => !OMITTED.has(name))
  const shown = optional.length > MAX_NAMED ? '…' : optional.join(', ')
  const parts = [...row.required.filter(name => !common.includes(name)), ...(shown ? [`[${shown}]`] : [])]
  return parts.length > 0 ? `(${parts.join(', ')})` : ''
}

export const titleOf = (name: string): string => {
  const words = name.replace(/^proxmox_/, '').replaceAll('_', ' ')
  return `Proxmox ${words}`.replace(/\b(vm|lxc|ha|sdn|acl|api|dns|osd|mds|acme|vmid)\b/g, word =>
    word.toUpperCase(),
  )
}
