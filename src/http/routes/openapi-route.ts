import { z } from 'zod'
import { openApi } from '../openapi.ts'
import { json } from '../respond.ts'
import { type Route, route } from '../route.ts'

/** Describes the other routes and itself. The document is built at the first request. */
export const openApiRoute = (others: readonly Route[], version: string): Route => {
  let document: unknown
  const self: Route = route({
    method: 'GET',
    path: '/openapi.json',
    tag: 'health',
    summary: 'This document',
    responses: { 200: { description: 'OpenAPI 3.1', schema: z.looseObject({}) } },
    handle: () => {
      document ??= openApi([...others, self], version)
      return json(document)
    },
  })
  return self
}
