import { type KnownOperation, type KnownParam, loadApiIndex } from './api-index.ts'

export interface Sent {
  readonly method: string
  readonly path: string
  readonly params: Readonly<Record<string, unknown>>
}

/** Says what Proxmox VE would refuse about a request: unknown path, method, parameter, type or value. */
export const createApiChecker = () => {
  const operations = loadApiIndex().map(operation => ({
    ...operation,
    parts: operation.path.split('/').filter(Boolean),
  }))

  const find = (method: string, path: string) => {
    const wanted = path.split('/').filter(Boolean)
    const fits = operations.filter(
      ({ parts, ...operation }) =>
        operation.method === method &&
        parts.length === wanted.length &&
        parts.every((part, i) => part === '{}' || part === wanted[i]),
    )
    const literal = (parts: string[]) => parts.filter(part => part !== '{}').length
    return fits.sort((a, b) => literal(b.parts) - literal(a.parts))[0]
  }

  return {
    operations: operations as readonly KnownOperation[],
    check({ method, path, params }: Sent): string[] {
      if (path.includes('..') || path.includes('//') || /[?#]/.test(path)) return [`${path} is no clean path`]
      const operation = find(method, path)
      if (!operation) return [`${method} ${path} does not exist`]
      return Object.entries(params).flatMap(([name, value]) => {
        const param = operation.params.get(name) ?? indexed(operation, name)
        if (!param) return [`${method} ${path} takes no '${name}'`]
        const values = Array.isArray(value) ? value : [value]
        return values
          .flatMap(one => problem(param, one))
          .map(text => `${method} ${path}: ${name}=${String(value)} ${text}`)
      })
    },
  }
}

const indexed = (operation: KnownOperation, name: string): KnownParam | undefined => {
  const match = /^([a-z]+)\d+$/.exec(name)
  const param = match ? operation.params.get(match[1]!) : undefined
  return param?.indexed ? param : undefined
}

const problem = (param: KnownParam, value: unknown): string[] => {
  if (param.type === 'boolean')
    return typeof value === 'boolean' || ['0', '1'].includes(String(value)) ? [] : ['is no boolean']
  if (param.type === 'number') return Number.isFinite(Number(value)) && value !== '' ? [] : ['is no number']
  if (param.values && !param.values.includes(String(value)))
    return [`is none of ${param.values.slice(0, 12).join(', ')}`]
  return typeof value === 'object' ? ['is an object'] : []
}
