import type { Operation } from './operation.ts'
import type { ParamSchema } from './schema.ts'

/** The catalogue file of a host, in Proxmox's format, made from our own table of operations. */
export const renderApidoc = (operations: readonly Operation[]): string => {
  const root: Branch = { path: '', info: {}, children: new Map() }
  for (const operation of operations) insert(root, operation)
  const tree = [...root.children.values()].map(print)
  return `const apiSchema = ${JSON.stringify(tree, null, 3)}\n;\n\nlet viewer = { "title": "API Viewer" }\n;\n`
}

interface Branch {
  path: string
  info: Record<string, unknown>
  children: Map<string, Branch>
}

const insert = (root: Branch, operation: Operation): void => {
  let at = root
  for (const part of operation.path.slice(1).split('/')) {
    const next = at.children.get(part) ?? { path: `${at.path}/${part}`, info: {}, children: new Map() }
    at.children.set(part, next)
    at = next
  }
  at.info[operation.method] = {
    method: operation.method,
    name: operation.name,
    description: operation.description,
    ...(operation.tokenForbidden ? { allowtoken: 0 } : { allowtoken: 1 }),
    ...(operation.onNode ? { proxyto: 'node', protected: 1 } : {}),
    ...(operation.permission === undefined
      ? {}
      : {
          permissions:
            'user' in operation.permission
              ? operation.permission
              : { check: ['perm', operation.permission.check[0], operation.permission.check[1]] },
        }),
    parameters: {
      additionalProperties: 0,
      properties: Object.fromEntries(
        Object.entries(operation.params ?? {}).map(([name, schema]) => [name, printParam(schema)]),
      ),
    },
    returns: { type: operation.returns },
  }
}

const print = (branch: Branch): unknown => ({
  path: branch.path,
  text: branch.path.split('/').at(-1),
  leaf: branch.children.size === 0 ? 1 : 0,
  ...(Object.keys(branch.info).length > 0 ? { info: branch.info } : {}),
  ...(branch.children.size > 0 ? { children: [...branch.children.values()].map(print) } : {}),
})

/** With the quirks of the original: numbers as text here and there, and 1 instead of true. */
const printParam = ({
  optional,
  last,
  minimum,
  maximum,
  ...schema
}: ParamSchema): Record<string, unknown> => ({
  type: 'string',
  ...schema,
  ...(optional || last !== undefined ? { optional: 1 } : {}),
  ...(minimum === undefined ? {} : { minimum }),
  ...(maximum === undefined ? {} : { maximum: String(maximum) }),
})
