import { type Field, fields, type Json } from './fields.ts'
import { type Query, toPage, toRecord } from './result-page.ts'
import { toLines, toText } from './text-lines.ts'
import { toSeries } from './time-series.ts'

/** How the answer of an action is shown. Data, so that the reference can tell it too. */
export type Show =
  | { readonly kind: 'rows'; readonly fields: readonly Field[]; readonly from?: Reshape }
  | { readonly kind: 'record'; readonly fields: readonly Field[]; readonly from?: Reshape }
  | { readonly kind: 'series'; readonly fields: readonly Field[] }
  | { readonly kind: 'lines' | 'text' | 'task' | 'done' }

/** Turns Proxmox' answer into the rows or the object it stands for. */
type Reshape = (data: unknown) => unknown

export const rows = (spec = '', from?: Reshape): Show => ({
  kind: 'rows',
  fields: fields(spec),
  ...(from && { from }),
})
export const record = (spec = '', from?: Reshape): Show => ({
  kind: 'record',
  fields: fields(spec),
  ...(from && { from }),
})
export const series = (spec: string): Show => ({ kind: 'series', fields: fields(spec) })
export const lines: Show = { kind: 'lines' }
export const longText: Show = { kind: 'text' }
/** Answers a UPID. Success is said only once the task has ended with OK. */
export const task: Show = { kind: 'task' }
/** Answers nothing. */
export const done: Show = { kind: 'done' }

export interface ShowQuery extends Query {
  readonly points?: number | undefined
  readonly peak?: boolean
}

export const shape = (show: Show, data: unknown, query: ShowQuery = {}): Record<string, Json> => {
  switch (show.kind) {
    case 'rows':
      return toPage(show.from ? show.from(data) : data, show.fields, query)
    case 'record':
      return toRecord(show.from ? show.from(data) : data, show.fields)
    case 'series':
      return toSeries(data, show.fields, { points: query.points ?? 12, peak: query.peak ?? false })
    case 'lines':
      return toLines(data, { limit: query.limit ?? 100 })
    case 'text':
      return toText(data)
    case 'task':
    case 'done':
      return { ok: true }
  }
}
