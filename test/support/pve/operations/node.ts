import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { badParams, die } from '../errors.ts'
import { NODE, type Operation } from '../operation.ts'

const AUDIT = { check: ['/nodes/{node}', ['Sys.Audit']] } as const

/** Settings of a node. */
export const nodeOperations: readonly Operation[] = [
  {
    method: 'GET',
    path: '/nodes/{node}/hosts',
    name: 'get_etc_hosts',
    description: 'Tells the content of /etc/hosts.',
    params: { node: NODE },
    permission: { check: ['/', ['Sys.Audit']] },
    onNode: true,
    returns: 'object',
    run: ({ state, params }) => {
      const data = state.nodes.get(String(params.node))!.hosts
      return { data, digest: digestOf(data) }
    },
  },
  {
    method: 'POST',
    path: '/nodes/{node}/hosts',
    name: 'write_etc_hosts',
    description: 'Writes /etc/hosts.',
    params: {
      node: NODE,
      data: { type: 'string' },
      digest: { type: 'string', optional: true, maxLength: 64 },
    },
    permission: { check: ['/nodes/{node}', ['Sys.Modify']] },
    onNode: true,
    returns: 'null',
    run: ({ state, params }) => {
      const node = state.nodes.get(String(params.node))!
      if (params.digest !== undefined && params.digest !== digestOf(node.hosts))
        die('detected modified configuration - file changed by other user? Try again.')
      for (const line of String(params.data).split('\n')) checkLine(line)
      node.hosts = String(params.data)
      return null
    },
  },
  {
    method: 'GET',
    path: '/nodes/{node}/syslog',
    name: 'syslog',
    description: 'Reads the system log.',
    params: { node: NODE, limit: { type: 'integer', optional: true } },
    permission: { check: ['/nodes/{node}', ['Sys.Syslog']] },
    onNode: true,
    returns: 'array',
    run: () => [{ n: 1, t: 'started' }],
  },
  {
    method: 'GET',
    path: '/nodes/{node}/disks/list',
    name: 'list',
    description: 'Lists the disks of a node.',
    params: { node: NODE },
    permission: AUDIT,
    onNode: true,
    returns: 'array',
    run: () => [],
  },
  {
    // Without a permission of its own: root with a ticket only.
    method: 'PUT',
    path: '/nodes/{node}/disks/wipedisk',
    name: 'wipe_disk',
    description: 'Wipes a disk.',
    params: { node: NODE, disk: { type: 'string' } },
    onNode: true,
    returns: 'string',
    run: () => die('no such disk'),
  },
]

/** A comment may stand on a line of its own only. */
const checkLine = (line: string): void => {
  if (/^\s*(#|$)/.test(line)) return
  const [ip = '', ...names] = line.trim().split(/\s+/)
  if (isIP(ip) === 0) throw badParams({ data: `Invalid IP '${ip}'` })
  const wrong = names.find(name => !/^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(name))
  if (wrong !== undefined) throw badParams({ data: `Invalid Hostname '${wrong}'` })
}

const digestOf = (text: string): string => createHash('sha1').update(text).digest('hex')
