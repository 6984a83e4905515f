import { z } from 'zod'
import { type ManifestTemplates, TEMPLATE_NAME } from '../../config/manifest-templates.ts'
import { AppError } from '../../jobs/errors.ts'
import { LIMITS } from '../../jobs/limits.ts'
import { readBody } from '../body.ts'
import { requireUser } from '../require-user.ts'
import { json, noContent } from '../respond.ts'
import { type Call, type Route, route } from '../route.ts'

const manifestSchema = z.record(z.string(), z.unknown()).describe('A manifest, perhaps without a task')

const listSchema = z.looseObject({
  templates: z.array(
    z.looseObject({
      name: z.string(),
      manifest: manifestSchema.exactOptional(),
      problem: z.string().exactOptional().describe('Why the file is not a valid manifest'),
    }),
  ),
})

export const templateRoutes = (templates: ManifestTemplates): Route[] => [
  route({
    method: 'GET',
    path: '/api/templates',
    tag: 'templates',
    summary: 'List the saved manifests',
    responses: { 200: { description: 'The templates', schema: listSchema } },
    handle: async () => json({ templates: await templates.list() }),
  }),

  route({
    method: 'PUT',
    path: '/api/templates/{name}',
    tag: 'templates',
    summary: 'Save a manifest by name; on the socket or in the console only',
    body: { description: 'The manifest', type: 'application/json', schema: manifestSchema },
    responses: { 204: { description: 'It is saved' } },
    handle: async call => {
      const name = templateName(call)
      await templates.save(name, await readBody(call, manifestSchema, LIMITS.manifestBytes))
      return noContent()
    },
  }),

  route({
    method: 'DELETE',
    path: '/api/templates/{name}',
    tag: 'templates',
    summary: 'Delete a saved manifest; on the socket or in the console only',
    responses: { 204: { description: 'It is deleted' } },
    handle: async call => {
      await templates.remove(templateName(call))
      return noContent()
    },
  }),
]

/** An agent with a token must not change what its user will submit later. */
const templateName = (call: Call): string => {
  requireUser(call, 'Templates cannot be changed', 'deputy open')
  const { name = '' } = call.params
  if (TEMPLATE_NAME.test(name)) return name
  throw new AppError('invalid', `'${name.slice(0, 80)}' is not a name for a template.`, {
    hint: 'Use up to 64 letters, digits, dots, dashes and underscores.',
  })
}
