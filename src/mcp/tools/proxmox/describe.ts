import type { Row, Tool } from './table/define.ts'

/** One line a model can call the tool from: what it is, and what each action takes. */
export const describeTool = (tool: Tool): string => {
  const actions = Object.entries(tool.actions)
  if (actions[0]?.[0] === '') return tool.about
  return `${tool.about} ${actions.map(([action, row]) => action + takes(row)).join('; ')}`
}

/** Few optional fields are named; of many it is enough to know that there are more. */
const MOST_NAMED = 3
const UNSAID = new Set(['wait', 'filter', 'fields', 'limit', 'cursor', 'node', 'type', 'digest', 'delete'])

const takes = (row: Row): string => {
  const optional = row.optional.filter(name => !UNSAID.has(name))
  const shown = optional.length > MOST_NAMED ? '…' : optional.join(', ')
  const parts = [...row.required, ...(shown ? [`[${shown}]`] : [])]
  return parts.length > 0 ? `(${parts.join(', ')})` : ''
}

export const titleOf = (name: string): string => {
  const words = name.replace(/^proxmox_/, '').replaceAll('_', ' ')
  return `Proxmox ${words}`.replace(/\b(vm|lxc|ha|sdn|acl|api|dns|osd|mds|acme|vmid)\b/g, word =>
    word.toUpperCase(),
  )
}
