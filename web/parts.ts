import { ApiError } from './api.ts'
import { h } from './dom.ts'

export const badge = (status: string): HTMLElement => h('span', { class: `badge ${status}` }, status)

export const failure = (error: unknown): HTMLElement =>
  h(
    'p',
    { class: 'problem', role: 'alert' },
    error instanceof Error ? error.message : String(error),
    error instanceof ApiError && error.hint !== undefined && h('small', {}, ` ${error.hint}`),
  )
