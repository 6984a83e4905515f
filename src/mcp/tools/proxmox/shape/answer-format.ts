import { type Field, fields, type Json } from './fields.ts'
import { type Query, toPage, toRecord } from './result-page.ts'
import { toLines, toText } from './text-lines.ts'
import { toSeries } from './time-series.ts'

/** The format of an action's answer. It is plain data, so that the reference can describe it too. */
export type AnswerFormat =
  | { readonly kind: 'rows'; readonly fields: readonly Field[]; readonly from?: Reshape }
  | { readonly kind: 'record'; readonly fields: readonly Field[]; readonly from?: Reshape }
  | { readonly kind: 'series'; readonly fields: readonly Field[] }
  | { readonly kind: 'lines' | 'text' | 'task' | 'done' }

/** Converts the response of Proxmox to rows or an object. */
type Reshape = (data: unknown) => unknown

export const rows = (spec = '', from?: Reshape): AnswerFormat => ({
  kind: 'rows',
  fields: fields(spec),
  ...(from && { from }),
})
export const record = (spec = '', from?: Reshape): AnswerFormat => ({
  kind: 'record',
  fields: fields(spec),
  ...(from && { from }),
})
export const series = (spec: string): AnswerFormat => ({ kind: 'series', fields: fields(spec) })
export const lines: AnswerFormat = { kind: 'lines' }
export const longText: AnswerFormat = { kind: 'text' }
/** The response is a UPID. The action succeeds only when the task ends with OK. */
export const task: AnswerFormat = { kind: 'task' }
/** The response is empty. */
export const done: AnswerFormat = { kind: 'done' }

export interface AnswerQuery extends Query {
  readonly points?: number | undefined
  readonly peak?: boolean
}

export const formatAnswer = (
  format: AnswerFormat,
  data: unknown,
  query: AnswerQuery = {},
): Record<string, Json> => {
  switch (format.kind) {
    case 'rows':
      return toPage(format.from ? format.from(data) : data, format.fields, query)
    case 'record':
      return toRecord(format.from ? format.from(data) : data, format.fields)
    case 'series':
      return toSeries(data, format.fields, { points: query.points ?? 12, peak: query.peak ?? false })
    case 'lines':
      return toLines(data, { limit: query.limit ?? 100 })
    case 'text':
      return toText(data)
    case 'task':
    case 'done':
      return { ok: true }
  }
}
