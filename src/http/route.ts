import type { IncomingMessage, ServerResponse } from 'node:http'
import type { z } from 'zod'
import type { Scope } from './auth.ts'
import { queryReader } from './query.ts'

/** Set by the listener. Without it, a request counts as one from the network. */
export interface HttpEnv {
  readonly listener?: 'socket' | 'tcp'
  readonly incoming?: IncomingMessage
  readonly outgoing?: ServerResponse
}

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** An authorised request. */
export interface Call {
  readonly request: Request
  readonly env: HttpEnv
  readonly params: Readonly<Record<string, string>>
  /** The path as sent, percent-encoded. */
  readonly path: string
  readonly scope: Scope
  /** Who is calling, from `x-deputy-origin`; recorded with the job. */
  readonly origin: string
}

interface RouteDocs {
  readonly method: Method
  /** In OpenAPI notation: `/api/jobs/{id}`. A trailing `{path}` may contain slashes. */
  readonly path: string
  readonly summary: string
  readonly tag: string
  /** Served without a token. */
  readonly open?: boolean
  /** Allowed with the read-only token although it is not a GET. */
  readonly readable?: boolean
  readonly body?: { readonly description: string; readonly type: string; readonly schema?: z.ZodType }
  readonly headers?: Readonly<Record<string, string>>
  readonly responses: Readonly<Record<number, ResponseDocs>>
}

export interface ResponseDocs {
  readonly description: string
  readonly type?: string
  readonly schema?: z.ZodType
}

/** A route as data. The app serves it and the OpenAPI document describes it, so both always agree. */
export interface Route extends RouteDocs {
  readonly query?: z.ZodObject
  run(call: Call): Response | Promise<Response>
}

export interface RouteSpec<Q extends z.ZodObject> extends RouteDocs {
  readonly query: Q
  handle(call: Call & { readonly query: z.output<Q> }): Response | Promise<Response>
}

export interface PlainRouteSpec extends RouteDocs {
  handle(call: Call): Response | Promise<Response>
}

export const route = ({ handle, ...docs }: PlainRouteSpec): Route => {
  const read = queryReader(undefined)
  return {
    ...docs,
    run: call => {
      read(call.request.url)
      return handle(call)
    },
  }
}

/** A route with query parameters. */
export const queryRoute = <Q extends z.ZodObject>({ handle, ...docs }: RouteSpec<Q>): Route => {
  const read = queryReader(docs.query)
  return { ...docs, run: call => handle({ ...call, query: read(call.request.url) }) }
}
