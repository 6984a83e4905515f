import { z } from 'zod'
import { AppError } from '../../../../jobs/errors.ts'
import type { Operation, Parameter } from '../../../../proxmox/catalogue/catalogue-operation.ts'
import { defineTool, reads, type Tool } from '../../../tool.ts'
import { bindAll, parsePath } from '../policy/api-operation.ts'
import { tierOf } from '../policy/tier.ts'
import type { ProxmoxService } from '../service.ts'
import { METHODS, methodSchema } from './methods.ts'

export const apiDescribe = (service: ProxmoxService): Tool =>
  defineTool({
    name: 'proxmox_api_describe',
    title: 'Describe a Proxmox operation',
    description: 'Parameters of one operation; `match` narrows long lists.',
    annotations: reads(true),
    input: z.strictObject({
      path: z.string().min(1).max(500).describe('e.g. nodes/{node}/qemu or nodes/pve1/qemu'),
      method: methodSchema.optional().describe('default GET'),
      match: z.string().max(64).optional(),
    }),
    run: async ({ path, method = 'GET', match }, { signal }) => {
      const catalogue = await service.api.catalogue({ signal })
      const wanted = `/${parsePath(path).join('/')}`
      const operation = catalogue.describe(method, wanted)
      if (!operation) {
        const others = METHODS.filter(other => catalogue.describe(other, wanted))
        throw new AppError('not_found', `No operation ${method} ${wanted} on this cluster.`, {
          hint:
            others.length > 0
              ? `Methods of this path: ${others.join(', ')}.`
              : 'Search with proxmox_api_search.',
        })
      }
      return { data: describe(operation, match) }
    },
  })

const describe = (operation: Operation, match: string | undefined) => {
  const params = operation.params.filter(param => !match || param.name.includes(match))
  const required = params.filter(param => param.required)
  const optional = params.filter(param => !param.required)
  return {
    operation: `${operation.verb} ${operation.path}`,
    about: clip(operation.description, 400),
    tier: tierOf(bindAll(operation.verb, operation.path.replace(/\{([^}]+)\}/g, 'x'), {})),
    ...(operation.rootOnly && { allowed_to: 'root@pam with a password only, never an API token' }),
    required: required.map(param => line(param, 160)),
    // For long lists only names are shown; `match` shows the details.
    optional:
      optional.length > 30
        ? optional.map(param => param.name + (param.indexed ? 'N' : ''))
        : optional.map(param => line(param, 80)),
    ...(optional.length > 30 && { more: 'Only names; narrow with match for types and texts.' }),
    returns: operation.returns,
  }
}

const line = (param: Parameter, length: number): string => {
  const limits = [param.minimum, param.maximum].some(limit => limit !== undefined)
    ? ` ${param.minimum ?? ''}..${param.maximum ?? ''}`
    : ''
  const type = param.enum ? param.enum.slice(0, 20).join('|') : `${param.type}${limits}`
  const nested = param.properties ? ` {${param.properties.slice(0, 30).join(',')}}` : ''
  return `${param.name}${param.indexed ? 'N' : ''} (${type}${nested}) ${clip(param.description, length)}`.trim()
}

const clip = (text: string, length: number) => (text.length > length ? `${text.slice(0, length - 1)}…` : text)
