import { AppError } from '../../../../jobs/errors.ts'
import type { Composite } from '../context.ts'
import { item, text, without } from './values.ts'

/** Proxmox replaces all servers at once and demands the domain; what is not named is kept. */
export const setDns: Composite = async (args, { call }) => {
  const present = item(await call('GET /nodes/{node}/dns', { node: args.node }))
  const values = {
    search: text(present, 'search'),
    dns1: text(present, 'dns1'),
    dns2: text(present, 'dns2'),
    dns3: text(present, 'dns3'),
  }
  const wanted = { ...without(values), ...without(args) }
  if (!('search' in wanted)) {
    throw new AppError('invalid', "'search' is needed: this node has no search domain yet.")
  }
  return call('PUT /nodes/{node}/dns', wanted)
}

export const getHosts: Composite = async ({ node }, { call }) => {
  const file = text(item(await call('GET /nodes/{node}/hosts', { node })), 'data') ?? ''
  return file
    .split('\n')
    .map(parseLine)
    .filter(line => line !== undefined)
}

/** The file is sent back whole, so its digest guards what others wrote meanwhile. */
export const setHosts: Composite = async ({ node, ip, name, comment, digest }, { call }) => {
  const file = item(await call('GET /nodes/{node}/hosts', { node }))
  const line = `${String(ip)} ${String(name)}${comment === undefined ? '' : ` # ${String(comment)}`}`
  const lines = (text(file, 'data') ?? '').replace(/\n$/, '').split('\n')
  const at = lines.findIndex(one => parseLine(one)?.ip === ip)
  const changed = at < 0 ? [...lines, line] : lines.with(at, line)
  const data = `${changed.join('\n')}\n`
  await call('POST /nodes/{node}/hosts', { node, data, digest: digest ?? text(file, 'digest') })
  return { ok: true, line, replaced: at < 0 ? null : lines[at] }
}

const parseLine = (line: string) => {
  const [content = '', ...comment] = line.split('#')
  const [ip, ...names] = content.trim().split(/\s+/)
  if (!ip || names.length === 0) return undefined
  return { ip, names: names.join(' '), comment: comment.join('#').trim() || null }
}
