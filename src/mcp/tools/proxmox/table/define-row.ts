import type { Composite } from '../row-context.ts'
import type { AnswerFormat } from '../shape/answer-format.ts'
import type { Param } from './common-params.ts'

/**
 * The table of Proxmox actions. Input schema, required fields, annotations, docs, skills and tests of an action are all
 * derived from its row.
 */
export type Tier = 'read' | 'elevated' | 'destructive'
export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

export interface Row {
  readonly tier: Tier
  readonly method: Method
  /** As Proxmox documents it, such as `/nodes/{node}/qemu/{vmid}`. Names in braces are parameters of the tool. */
  readonly path: string
  readonly required: readonly string[]
  readonly optional: readonly string[]
  readonly format: AnswerFormat
  /** Parameters that are sent unless the caller sets them, such as `command=reboot`. */
  readonly preset: Readonly<Record<string, string>>
  /** The highest tier that the action can have with certain parameters. */
  readonly worst: Tier
  /** For actions that need more than one request. These requests also pass the gate. */
  readonly run?: Composite
  /** A remark for the reference. */
  readonly note?: string
}

export interface Tool {
  readonly name: string
  readonly about: string
  readonly params: Readonly<Record<string, Param>>
  /** Keyed by action. A tool with a single action has the key ''. */
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

/** `params` lists the parameter names, required ones with a star: `'node* vmid* force'`. */
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
