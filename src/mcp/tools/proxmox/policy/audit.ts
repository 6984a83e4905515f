import { appendFile, mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Tier } from '../table/define-row.ts'
import { type Operation, operationPath } from './api-operation.ts'
import { isSecretName } from './withhold-secrets.ts'

export interface AuditEntry {
  readonly who: string
  readonly tool: string
  readonly action: string
  readonly tier: Tier
  readonly operation: Operation
  /** `started` is written before the request is sent, so that it is logged even if the daemon crashes. */
  readonly event: 'started' | 'done' | 'failed' | 'denied' | 'unconfirmed'
  readonly id: string
  readonly detail?: string
  readonly ms?: number
}

export interface Audit {
  write(entry: AuditEntry): Promise<void>
}

/** Appends JSON lines to a file that only the user can read. Entries that arrive during a write are written together. */
export const createAudit = (file: string, now: () => number = Date.now): Audit => {
  let waiting: string[] = []
  let flush: Promise<void> | undefined

  const append = async () => {
    const lines = waiting.join('')
    waiting = []
    flush = undefined
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    // Opened for each write, so that log rotation works.
    await appendFile(file, lines, { mode: 0o600 })
  }

  let last: Promise<void> = Promise.resolve()
  return {
    write: entry => {
      waiting.push(`${JSON.stringify({ at: new Date(now()).toISOString(), ...auditLine(entry) })}\n`)
      // Continue after a failed write: its caller has received the error.
      flush ??= last = last.catch(() => {}).then(append)
      return flush
    },
  }
}

export const auditLine = ({ operation, ...entry }: AuditEntry) => ({
  ...entry,
  method: operation.method,
  path: operationPath(operation),
  params: Object.fromEntries(
    Object.entries(operation.params).map(([key, value]) => [key, shown(key, value)]),
  ),
})

/** Content that is sent to guests; only its length is logged. */
const CONTENT = new Set(['content', 'input-data', 'data', 'body', 'certificates'])

const shown = (key: string, value: unknown): unknown => {
  if (isSecretName(key)) return '[secret]'
  const text = Array.isArray(value) ? JSON.stringify(value) : String(value)
  if (CONTENT.has(key) && text.length > 40) return `[${text.length} characters]`
  return text.length > 300 ? `${text.slice(0, 300)}…` : text
}
