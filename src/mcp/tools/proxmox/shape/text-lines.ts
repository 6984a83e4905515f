import { isRecord } from '../../../../jobs/records.ts'
import type { Json } from './fields.ts'

/** Formats a log, which Proxmox sends as `[{n, t}]` or as strings. Keeps the newest lines when there are too many. */
export const toLines = (data: unknown, { limit = 100, maxChars = 12_000 } = {}): Record<string, Json> => {
  const all = (Array.isArray(data) ? data : String(data ?? '').split('\n')).map(lineOf)
  const lines = all[0] === 'no content' && all.length === 1 ? [] : all
  const kept = lines.slice(-limit)
  let size = kept.reduce((sum, line) => sum + line.length + 1, 0)
  while (size > maxChars && kept.length > 1) size -= kept.shift()!.length + 1
  const answer: Record<string, Json> = { lines: kept.map(line => clip(line, 2000)), total: lines.length }
  if (kept.length < lines.length) answer.omitted = lines.length - kept.length
  return answer
}

const lineOf = (line: unknown): string => (isRecord(line) ? String(line.t ?? '') : String(line ?? ''))

/** Shortens a long text to its head and tail, and reports how much is missing. */
export const toText = (data: unknown, maxChars = 12_000): Record<string, Json> => {
  const text = String(data ?? '')
  if (text.length <= maxChars) return { text }
  const half = Math.floor(maxChars / 2)
  return { text: `${text.slice(0, half)}\n…\n${text.slice(-half)}`, omitted_chars: text.length - 2 * half }
}

const clip = (line: string, max: number) => (line.length > max ? `${line.slice(0, max)}…` : line)
