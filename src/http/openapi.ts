import { z } from 'zod'
import type { ResponseDocs, Route } from './route.ts'
import { errorSchema } from './views.ts'

/** Builds the OpenAPI 3.1 document from the routes. */
export const openApi = (routes: readonly Route[], version: string) => {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes) {
    paths[route.path] ??= {}
    paths[route.path]![route.method.toLowerCase()] = operation(route)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Deputy',
      version,
      license: { name: 'MIT', identifier: 'MIT' },
      description: 'Hands tasks to isolated machines and brings back what they did.',
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: "The content of the file 'token' (or 'token-readonly') in the state directory",
        },
      },
      schemas: { Error: jsonSchema(errorSchema, 'output') },
    },
  }
}

const operation = (route: Route) => ({
  operationId: operationId(route),
  summary: route.summary,
  tags: [route.tag],
  ...(route.open === true && { security: [] }),
  parameters: [...pathParameters(route), ...queryParameters(route), ...headerParameters(route)],
  ...(route.body !== undefined && { requestBody: requestBody(route.body) }),
  responses: {
    ...Object.fromEntries(
      Object.entries(route.responses).map(([status, response]) => [status, responseObject(response)]),
    ),
    default: {
      description: 'What went wrong and what to do next',
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
    },
  },
})

/** `GET /api/jobs/{id}/output` → `get_jobs_id_output`. */
const operationId = ({ method, path }: Route): string =>
  `${method.toLowerCase()}_${path
    .replace(/^\/(api\/)?/, '')
    .replace(/[{}]/g, '')
    .replace(/[^a-z0-9]+/gi, '_')}`

const pathParameters = ({ path }: Route) =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: name === 'id' ? { type: 'string', format: 'uuid' } : { type: 'string' },
  }))

const queryParameters = ({ query }: Route) => {
  if (query === undefined) return []
  const { properties = {}, required = [] } = jsonSchema(query, 'input')
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...schema } = typeof property === 'object' ? property : {}
    return {
      name,
      in: 'query',
      required: required.includes(name),
      ...(description !== undefined && { description }),
      schema,
    }
  })
}

const headerParameters = ({ headers = {} }: Route) =>
  Object.entries(headers).map(([name, description]) => ({
    name,
    in: 'header',
    required: false,
    description,
    schema: { type: 'string' },
  }))

const requestBody = ({ description, type, schema }: NonNullable<Route['body']>) => ({
  description,
  content: {
    [type]: {
      schema: schema === undefined ? { type: 'string', format: 'binary' } : jsonSchema(schema, 'input'),
    },
  },
})

const responseObject = ({ description, type, schema }: ResponseDocs) => ({
  description,
  ...((schema !== undefined || type !== undefined) && {
    content: {
      [type ?? 'application/json']: {
        schema: schema === undefined ? { type: 'string' } : jsonSchema(schema, 'output'),
      },
    },
  }),
})

const jsonSchema = (schema: z.ZodType, io: 'input' | 'output') => {
  const { $schema, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return rest
}
