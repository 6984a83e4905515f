import { buffer } from 'node:stream/consumers'
import {
  type McpServer,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  ResourceTemplate,
} from '@modelcontextprotocol/server'
import type { Deputy } from '../engine/deputy.ts'
import { toAppError } from '../jobs/errors.ts'
import { formatSize } from '../jobs/sizes.ts'
import { artifactPath, jobUri, logUri } from './job-uris.ts'
import { mimeType } from './mime-types.ts'
import { outputText } from './output-text.ts'
import { errorText } from './tool-results.ts'
import { describeJob, shorten } from './tools/jobs/describe-job.ts'

const LISTED_JOBS = 20
const COMPLETED_IDS = 100
const LOG_BYTES = 256 * 1024
/** More does not fit into the context of a model. The REST API serves files of any size. */
const ARTIFACT_BYTES = 4 * 1024 * 1024

/** Jobs, their logs and their artifacts as MCP resources. */
export const registerResources = (server: McpServer, deputy: Deputy): void => {
  const complete = { id: (value: string) => completeId(deputy, value) }

  server.registerResource(
    'job',
    new ResourceTemplate('job://{id}', { list: () => listJobs(deputy), complete }),
    { title: 'Job', description: 'State of a job', mimeType: 'application/json' },
    async (uri, { id }) => {
      const job = await withProtocolErrors(uri, () => deputy.get(String(id)))
      return {
        contents: [{ uri: uri.href, mimeType: 'application/json', text: JSON.stringify(describeJob(job)) }],
      }
    },
  )

  server.registerResource(
    'job-log',
    new ResourceTemplate('job://{id}/log', { list: undefined, complete }),
    {
      title: 'Log of a job',
      description: 'Output of a job, its end when it is long',
      mimeType: 'text/plain',
    },
    async (uri, { id }, ctx) => {
      const text = await withProtocolErrors(uri, () => readLog(deputy, String(id), ctx.mcpReq.signal))
      return { contents: [{ uri: uri.href, mimeType: 'text/plain', text }] }
    },
  )

  server.registerResource(
    'job-artifact',
    new ResourceTemplate('job://{id}/artifacts/{+path}', {
      list: undefined,
      complete: {
        ...complete,
        path: (value, context) => completePath(deputy, value, context?.arguments?.id),
      },
    }),
    { title: 'Artifact of a job', description: 'A file that a job brought back' },
    async (uri, { id, path }) => {
      const file = artifactPath(String(path))
      if (file === undefined) throw new ResourceNotFoundError(uri.href)
      return {
        contents: [
          await withProtocolErrors(uri, () => readArtifact({ deputy, uri: uri.href, id: String(id), file })),
        ],
      }
    },
  )
}

const listJobs = async (deputy: Deputy) => {
  const { jobs } = await deputy.list({ limit: LISTED_JOBS })
  return {
    resources: jobs.map(job => ({
      uri: jobUri(job.job_id),
      name: `${job.status}: ${shorten(job.task, 60)}`,
    })),
  }
}

const completeId = async (deputy: Deputy, value: string): Promise<string[]> => {
  const { jobs } = await deputy.list({ limit: COMPLETED_IDS })
  return jobs.map(job => job.job_id).filter(id => id.startsWith(value))
}

const completePath = async (deputy: Deputy, value: string, id: string | undefined): Promise<string[]> => {
  if (id === undefined) return []
  const artifacts = await deputy.artifacts(id).catch(() => [])
  return artifacts.map(artifact => artifact.path).filter(path => path.startsWith(value))
}

const readLog = async (deputy: Deputy, id: string, signal: AbortSignal): Promise<string> => {
  const job = await deputy.get(id)
  if (job.output_bytes === 0) return ''
  const cursor = job.output_bytes > LOG_BYTES ? -LOG_BYTES : 0
  const page = await deputy.output(id, { cursor, maxBytes: LOG_BYTES, signal })
  const { text, next_cursor } = outputText(page)
  const before =
    cursor === 0
      ? ''
      : `[The last ${formatSize(LOG_BYTES)} of ${logUri(id)}; stream_job_output reads all of it.]\n`
  const after =
    page.done || next_cursor >= job.output_bytes
      ? ''
      : `\n[More output: stream_job_output with cursor ${next_cursor}.]`
  return `${before}${text}${after}`
}

interface ArtifactRequest {
  deputy: Deputy
  uri: string
  id: string
  file: string
}

const readArtifact = async ({ deputy, uri, id, file }: ArtifactRequest) => {
  const artifact = await deputy.openArtifact(id, file)
  if (artifact.size > ARTIFACT_BYTES)
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      `'${file}' has ${formatSize(artifact.size)}; a resource may have at most ${formatSize(ARTIFACT_BYTES)}. Next: deputy artifacts get ${id} ${file}`,
    )
  const bytes = await buffer(artifact.read())
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return { uri, mimeType: mimeType(file, true), text }
  } catch {
    return { uri, mimeType: mimeType(file, false), blob: bytes.toString('base64') }
  }
}

/** Reports a missing resource with the error code of the protocol, and other errors with their message and hint. */
const withProtocolErrors = async <T>(uri: URL, read: () => Promise<T>): Promise<T> => {
  try {
    return await read()
  } catch (thrown) {
    if (thrown instanceof ProtocolError) throw thrown
    const error = toAppError(thrown)
    if (error.code === 'not_found' || error.code === 'invalid')
      throw new ResourceNotFoundError(uri.href, error.message)
    throw new ProtocolError(ProtocolErrorCode.InternalError, errorText(error))
  }
}
