import { z } from 'zod'
import { AppError } from '../../jobs/errors.ts'
import { LIMITS } from '../../jobs/limits.ts'
import { manifestSchema } from '../../jobs/manifest.ts'
import { isRecord } from '../../jobs/records.ts'
import { readJson } from '../body.ts'
import { allowedDirectories } from '../client-directories.ts'
import type { ControlDeps } from '../deps.ts'
import { createLargeAnswers, type LargeAnswers } from '../large-answers.ts'
import { jobId, waitSeconds } from '../params.ts'
import { json, noContent } from '../respond.ts'
import { type Call, queryRoute, type Route, route } from '../route.ts'
import { withSignal } from '../signal.ts'
import { jobPageSchema, jobSchema, resultSchema, stateSchema } from '../views.ts'

const LARGE_RESULT = 256 * 1024

const listQuery = z.strictObject({
  status: stateSchema.exactOptional(),
  label: z.string().min(1).max(400).exactOptional().describe("'name' or 'name=value'"),
  runtime: z.string().min(1).max(64).exactOptional(),
  agent: z.string().min(1).max(64).exactOptional(),
  origin: z.string().min(1).max(100).exactOptional().describe("The client, such as 'cli' or 'mcp'"),
  node: z.string().min(1).max(253).exactOptional().describe('The node that a finished job ran on'),
  parent: z
    .union([z.literal('none'), z.uuid()])
    .exactOptional()
    .describe("Members of this batch; 'none': no members of batches"),
  since: z.iso.datetime().exactOptional().describe('Submitted at or after this time'),
  until: z.iso.datetime().exactOptional().describe('Submitted before this time'),
  sort: z.enum(['newest', 'oldest', 'longest']).exactOptional(),
  search: z
    .string()
    .min(1)
    .max(200)
    .exactOptional()
    .describe('Part of the first line of the task, or the beginning of an id'),
  limit: z.int().min(1).max(1000).exactOptional(),
  cursor: z.string().min(1).max(200).exactOptional().describe("'next_cursor' of the page before"),
})

const resultQuery = z.strictObject({
  max_bytes: z
    .int()
    .min(0)
    .max(16 * 1024 * 1024)
    .exactOptional()
    .describe('Maximum bytes of output'),
})

export const jobRoutes = (deps: ControlDeps): Route[] => listRoutes(deps, createLargeAnswers())

const listRoutes = ({ deputy, closing }: ControlDeps, large: LargeAnswers): Route[] => [
  route({
    method: 'POST',
    path: '/api/jobs',
    tag: 'jobs',
    summary: 'Submit a job; it is durable when the answer arrives',
    body: { description: 'The manifest', type: 'application/json', schema: manifestSchema },
    headers: { 'Idempotency-Key': "The same as 'idempotency_key' in the manifest" },
    responses: {
      201: { description: 'The new job', schema: jobSchema },
      200: { description: 'The job of an earlier submit with the same idempotency key', schema: jobSchema },
    },
    handle: async call => {
      const manifest = withKey(await readJson(call, LIMITS.manifestBytes), call)
      const view = await deputy.submit(manifest, call.origin, { directories: allowedDirectories(call) })
      return view.deduplicated === true
        ? json(view)
        : json(view, 201, { location: `/api/jobs/${view.job_id}` })
    },
  }),

  queryRoute({
    method: 'GET',
    path: '/api/jobs',
    tag: 'jobs',
    summary: 'List jobs',
    query: listQuery,
    responses: { 200: { description: 'A page of jobs', schema: jobPageSchema } },
    handle: async ({ query }) => json(await deputy.list(query)),
  }),

  queryRoute({
    method: 'GET',
    path: '/api/jobs/{id}',
    tag: 'jobs',
    summary: 'Show the status of a job, or wait until it changes',
    query: z.strictObject({
      wait_seconds: waitSeconds,
      since: stateSchema
        .exactOptional()
        .describe('Wait until the status differs from this one; without it, until the job ends'),
    }),
    responses: { 200: { description: 'The job', schema: jobSchema } },
    handle: async call => {
      const id = jobId(call)
      const { wait_seconds = 0, since } = call.query
      if (wait_seconds === 0) return json(await deputy.get(id))
      const options = { timeoutMs: wait_seconds * 1000, ...(since !== undefined && { since }) }
      return json(await withSignal(call, closing, signal => deputy.wait(id, { ...options, signal })))
    },
  }),

  route({
    method: 'GET',
    path: '/api/jobs/{id}/manifest',
    tag: 'jobs',
    summary: 'Tell what was asked for; secrets by name only',
    responses: { 200: { description: 'The manifest, with defaults', schema: manifestSchema } },
    handle: async call => json(await deputy.manifest(jobId(call))),
  }),

  queryRoute({
    method: 'GET',
    path: '/api/jobs/{id}/result',
    tag: 'jobs',
    summary: 'Show the result of a finished job: exit status, output, artifacts, usage',
    query: resultQuery,
    responses: { 200: { description: 'The result', schema: resultSchema } },
    handle: async call => {
      const { max_bytes } = call.query
      const read = () =>
        deputy.result(jobId(call), { ...(max_bytes !== undefined && { maxBytes: max_bytes }) })
      return max_bytes !== undefined && max_bytes > LARGE_RESULT ? large.send(read) : json(await read())
    },
  }),

  route({
    method: 'POST',
    path: '/api/jobs/{id}/cancel',
    tag: 'jobs',
    summary: 'Cancel a job',
    responses: {
      200: { description: 'The job, which may still be ending', schema: jobSchema },
      409: { description: 'The job has already finished' },
    },
    handle: async call => json(await deputy.cancel(jobId(call), call.origin)),
  }),

  route({
    method: 'DELETE',
    path: '/api/jobs/{id}',
    tag: 'jobs',
    summary: 'Delete a finished job, its output, its artifacts and its kept machine',
    responses: { 204: { description: 'The job is deleted' } },
    handle: async call => {
      await deputy.delete(jobId(call))
      return noContent()
    },
  }),
]

const withKey = (manifest: unknown, { request }: Call): unknown => {
  const key = request.headers.get('idempotency-key')
  if (key === null || !isRecord(manifest)) return manifest
  const own = manifest.idempotency_key
  if (own === undefined) return { ...manifest, idempotency_key: key }
  if (own === key) return manifest
  throw new AppError(
    'invalid',
    `The Idempotency-Key '${key.slice(0, 60)}' differs from the manifest's own.`,
    {
      hint: "Send the header or 'idempotency_key', or the same in both.",
    },
  )
}
