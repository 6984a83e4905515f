import type { Composite } from '../row-context.ts'
import type { AnswerFormat } from '../shape/answer-format.ts'
import type { Param } from './common-params.ts'

/**
 * The table of Proxmox actions. Everything a client sees or the server enforces about an action (input schema,
 * required fields, annotations, docs, skills, tests) is derived from its row; nothing is written twice.
 */
export type Tier = 'read' | 'elevated' | 'destructive'
export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

export interface Row {
  readonly tier: Tier
  readonly method: Method
  /** As Proxmox documents it: `/nodes/{node}/qemu/{vmid}`. Names in braces are parameters of the tool. */
  readonly path: string
  readonly required: readonly string[]
  readonly optional: readonly string[]
  readonly format: AnswerFormat
  /** Sent unless the caller chose otherwise: `command=reboot`, a default Proxmox does not have. */
  readonly preset: Readonly<Record<string, string>>
  /** What it becomes with some of its parameters, where that is more than its tier. */
  readonly worst: Tier
  /** For what one request cannot do; its requests pass the same gate as any other. */
  readonly run?: Composite
  /** What is not obvious from the name; shown in the reference. */
  readonly note?: string
}

export interface Tool {
  readonly name: string
  readonly about: string
  readonly params: Readonly<Record<string, Param>>
  /** Keyed by action. A tool that does one thing has the single key ''. */
  readonly actions: Readonly<Record<string, Row>>
}

export interface Toolset {
  readonly name: string
  readonly about: string
  readonly tools: readonly Tool[]
}

interface RowExtras {
  readonly worst?: Tier
  readonly preset?: Readonly<Record<string, string>>
  readonly run?: Composite
  readonly note?: string
}

type MakeRow = (
  operation: `${Method} /${string}`,
  params: string,
  format: AnswerFormat,
  extras?: RowExtras,
) => Row

/** `params` lists parameter names as the reader of the table wants them: `'node* vmid* force'`, star = required. */
const row =
  (tier: Tier): MakeRow =>
  (operation, params, format, extras = {}) => {
    const space = operation.indexOf(' ')
    const names = params.split(' ').filter(Boolean)
    return {
      tier,
      method: operation.slice(0, space) as Method,
      path: operation.slice(space + 1),
      required: names.filter(name => name.endsWith('*')).map(name => name.slice(0, -1)),
      optional: names.filter(name => !name.endsWith('*')),
      format,
      preset: extras.preset ?? {},
      worst: extras.worst ?? tier,
      ...(extras.run && { run: extras.run }),
      ...(extras.note && { note: extras.note }),
    }
  }

export const read = row('read')
export const elevated = row('elevated')
export const destructive = row('destructive')

export const tool = (
  name: string,
  about: string,
  params: Record<string, Param>,
  actions: Record<string, Row> | Row,
): Tool => ({
  name,
  about,
  params,
  actions: isRow(actions) ? { '': actions } : actions,
})

const isRow = (value: Record<string, Row> | Row): value is Row => typeof value.tier === 'string'

/** The names in braces, in order. */
export const pathParams = (path: string): string[] =>
  [...path.matchAll(/\{([^}]+)\}/g)].map(match => match[1]!)
