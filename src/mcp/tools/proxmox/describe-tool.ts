import type { Row, Tool } from './table/define-row.ts'

/** One line a model can call the tool from: what it is, and what each action takes besides what all of them need. */
export const describeTool = (tool: Tool): string => {
  const actions = Object.entries(tool.actions)
  if (actions[0]?.[0] === '') return tool.about
  const rows = Object.values(tool.actions)
  const common = rows[0]!.required.filter(name => rows.every(row => row.required.includes(name)))
  return `${tool.about} ${actions.map(([action, row]) => action + takes(row, common)).join('; ')}`
}

/** Few optional fields are named; of many it is enough to know that there are more. */
const MAX_NAMED = 3
const UNSAID = new Set(['wait', 'filter', 'fields', 'limit', 'cursor', 'node', 'type', 'digest', 'delete'])

const takes = (row: Row, common: readonly string[]): string => {
  const optional = row.optional.filter(name => !UNSAID.has(name))
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
