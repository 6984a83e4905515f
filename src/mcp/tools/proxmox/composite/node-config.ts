import { AppError } from '../../../../jobs/errors.ts'
import type { Composite } from '../row-context.ts'
import { item, text, without } from './values.ts'

/** Proxmox replaces all DNS settings at once and requires the search domain, so the current values are sent along. */
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
  const lines = file.split('\n')
  return lines.flatMap((line, at) => {
    const entry = parseLine(line)
    return entry ? [{ ...entry, comment: entry.comment ?? commentOf(lines[at - 1]) }] : []
  })
}

/**
 * Sends the whole file back, with its digest to detect concurrent changes. Proxmox VE refuses a file with a comment
 * after an address, so comments are moved to separate lines.
 */
export const setHosts: Composite = async ({ node, ip, name, comment, digest }, { call }) => {
  const file = item(await call('GET /nodes/{node}/hosts', { node }))
  const before = (text(file, 'data') ?? '').replace(/\n$/, '').split('\n')
  const lines = before.flatMap(withCommentAbove)
  const line = `${String(ip)} ${String(name)}`
  const at = lines.findIndex(one => parseLine(one)?.ip === ip)
  const place = at < 0 ? lines.length : at
  const isNew = comment !== undefined && commentOf(lines[place - 1]) !== String(comment)
  const changed = lines.toSpliced(place, at < 0 ? 0 : 1, ...(isNew ? [`# ${String(comment)}`] : []), line)
  const data = `${changed.join('\n')}\n`
  await call('POST /nodes/{node}/hosts', { node, data, digest: digest ?? text(file, 'digest') })
  return {
    ok: true,
    line,
    replaced: at < 0 ? null : lines[at],
    ...(lines.length > before.length && { comments_moved: lines.length - before.length }),
  }
}

const withCommentAbove = (line: string): string[] => {
  const entry = parseLine(line)
  return entry?.comment ? [`# ${entry.comment}`, line.slice(0, line.indexOf('#')).trimEnd()] : [line]
}

const commentOf = (line: string | undefined): string | null =>
  /^\s*#\s*(.+?)\s*$/.exec(line ?? '')?.[1] ?? null

const parseLine = (line: string) => {
  const [content = '', ...comment] = line.split('#')
  const [ip, ...names] = content.trim().split(/\s+/)
  if (!ip || names.length === 0) return undefined
  return { ip, names: names.join(' '), comment: comment.join('#').trim() || null }
}
