import { isRecord } from '../../../jobs/records.ts'
import type { Tool } from './table/define-row.ts'

/**
 * Accepts arguments as proxmox-mcp named them: `operation` for `action`, an `action` on tools that have only one, and
 * rare parameters at the top level. They are not listed, because each would cost every client tokens.
 */
export const withFormerNames = (tool: Tool, args: unknown): unknown => {
  if (!isRecord(args)) return args
  const { operation, action, ...rest } = args
  const single = '' in tool.actions
  const chosen = action ?? ('operation' in tool.params ? undefined : operation)
  const kept = single && chosen === 'get' ? {} : chosen === undefined ? {} : { action: chosen }
  const others = 'operation' in tool.params && operation !== undefined ? { operation } : {}
  return moveInto(tool, { ...kept, ...others, ...rest })
}

const moveInto = (tool: Tool, args: Record<string, unknown>): Record<string, unknown> => {
  const former = FORMER[tool.name]
  if (former === undefined) return args
  const moved = former.names.filter(name => args[name] !== undefined)
  if (moved.length === 0) return args
  const object = args[former.into]
  return {
    ...Object.fromEntries(Object.entries(args).filter(([name]) => !moved.includes(name))),
    [former.into]: {
      ...Object.fromEntries(moved.map(name => [name, args[name]])),
      ...(isRecord(object) && object),
    },
  }
}

/** Arguments that Deputy's tools take inside an object argument. */
const FORMER: Readonly<Record<string, { into: string; names: readonly string[] }>> = {
  proxmox_cluster_backup_job: {
    into: 'options',
    names: [
      ...['dumpdir', 'exclude-path', 'ionice', 'lockwait', 'maxfiles', 'performance', 'pigz', 'quiet'],
      ...['remove', 'script', 'stdexcludes', 'stop', 'stopwait', 'tmpdir', 'zstd'],
    ],
  },
  proxmox_storage_config: { into: 'settings', names: ['smbversion'] },
}
