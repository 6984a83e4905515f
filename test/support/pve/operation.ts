import type { Auth } from './auth.ts'
import type { Faults } from './faults.ts'
import type { GuestDriver } from './guests/driver.ts'
import type { ParamTable, Values } from './schema.ts'
import type { State } from './state.ts'

export interface Context {
  readonly state: State
  readonly faults: Faults
  readonly guests: GuestDriver
  readonly auth: Auth
  readonly params: Values
  /** The file of a multipart request. */
  readonly file: Buffer | undefined
}

type Permission =
  | { readonly user: 'world' | 'all' }
  /** Placeholders in the path are filled from the parameters. */
  | { readonly check: readonly [path: string, privileges: readonly string[]]; readonly any?: boolean }

export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly name: string
  readonly description: string
  readonly params?: ParamTable
  readonly permission?: Permission
  readonly tokenForbidden?: boolean
  /** The node in the path does the work, so it must be up. */
  readonly onNode?: boolean
  readonly multipart?: boolean
  readonly returns: 'null' | 'string' | 'object' | 'array' | 'integer'
  run(context: Context): unknown
}

export const NODE = { type: 'string', format: 'pve-node' } as const
export const VMID = { type: 'integer', format: 'pve-vmid', minimum: 100, maximum: 999_999_999 } as const
export const text = (params: Values, name: string): string | undefined => {
  const value = params[name]
  return value === undefined ? undefined : String(value)
}
