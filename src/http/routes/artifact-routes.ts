import type { OpenArtifact } from '../../engine/deputy.ts'
import { AppError } from '../../jobs/errors.ts'
import { bodyChunks } from '../body.ts'
import type { ControlDeps } from '../deps.ts'
import { download } from '../download.ts'
import { jobId } from '../params.ts'
import { json } from '../respond.ts'
import { type Call, type Route, route } from '../route.ts'
import { artifactListSchema, blobSchema } from '../views.ts'

const GIB = 1024 ** 3

const BYTES = {
  headers: { Range: 'One range of bytes', 'If-None-Match': 'The sha256 of the known copy' },
  responses: {
    200: { description: 'The file; its ETag is its sha256', type: 'application/octet-stream' },
    206: { description: 'The requested range', type: 'application/octet-stream' },
    304: { description: 'The client already has this version' },
    416: { description: 'The range is beyond the end of the file' },
  },
} as const

export const artifactRoutes = ({ deputy, maxUpload = GIB }: ControlDeps): Route[] => [
  route({
    method: 'GET',
    path: '/api/jobs/{id}/artifacts',
    tag: 'artifacts',
    summary: 'List the artifacts of a job',
    responses: { 200: { description: 'The artifacts', schema: artifactListSchema } },
    handle: async call => json({ artifacts: await deputy.artifacts(jobId(call)) }),
  }),

  route({
    method: 'GET',
    path: '/api/jobs/{id}/artifacts/{path}',
    tag: 'artifacts',
    summary: 'Download an artifact',
    ...BYTES,
    handle: async call => send(call, await deputy.openArtifact(jobId(call), artifactPath(call))),
  }),

  route({
    method: 'GET',
    path: '/api/jobs/{id}/patch',
    tag: 'artifacts',
    summary: "Download a job's changes to its workspace as a patch",
    ...BYTES,
    handle: async call => {
      const id = jobId(call)
      return send(call, { ...(await deputy.openPatch(id)), path: `${id}.patch` })
    },
  }),

  route({
    method: 'PUT',
    path: '/api/blobs',
    tag: 'artifacts',
    summary: 'Upload a workspace as a tar, for workspace.blob of a manifest',
    body: { description: 'The bytes', type: 'application/octet-stream' },
    responses: { 201: { description: 'Stored', schema: blobSchema } },
    handle: async call => json(await deputy.putBlob(bodyChunks(call, maxUpload)), 201),
  }),
]

const send = (call: Call, file: OpenArtifact): Promise<Response> =>
  download(call, {
    name: file.path,
    sha256: file.sha256,
    size: file.size,
    bytes: range => file.read(range),
  })

/** The rest of the path, decoded once. The engine compares exact names; this rejects paths that cannot be one. */
const artifactPath = ({ path }: Call): string => {
  const encoded = path.slice(path.indexOf('/artifacts/') + '/artifacts/'.length)
  let name: string
  try {
    name = decodeURIComponent(encoded)
  } catch {
    throw new AppError(
      'invalid',
      `Invalid artifact path '${encoded.slice(0, 100)}': not percent-encoded UTF-8.`,
    )
  }
  const parts = name.split('/')
  if (name.includes('\0') || parts.some(part => part === '' || part === '.' || part === '..'))
    throw new AppError('invalid', `Invalid artifact path ${JSON.stringify(name.slice(0, 100))}.`, {
      hint: 'Use a path as GET /api/jobs/{id}/artifacts lists it, relative to the workspace.',
    })
  return name
}
