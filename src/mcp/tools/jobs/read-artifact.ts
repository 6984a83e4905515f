import { z } from 'zod'
import type { OpenArtifact } from '../../../engine/deputy.ts'
import { AppError } from '../../../jobs/errors.ts'
import { defineTool, reads } from '../../tool.ts'
import { prune } from './describe-job.ts'
import { fullJobId, jobId } from './job-id.ts'

const DEFAULT_BYTES = 16 * 1024
const MAX_BYTES = 256 * 1024

const range = {
  offset: z.number().int().min(0).optional().describe('Byte to start at'),
  max_bytes: z.number().int().min(1).max(MAX_BYTES).optional(),
}

export const readArtifact = defineTool({
  name: 'read_artifact',
  title: 'Read an artifact',
  description: 'Content of a file that a finished job returned.',
  annotations: reads(),
  input: z.strictObject({ job_id: jobId, path: z.string().min(1).max(4096), ...range }),
  run: async (input, { deputy }) => {
    const id = await fullJobId(deputy, input.job_id)
    return readRange(id, await deputy.openArtifact(id, input.path), input)
  },
})

export const getPatch = defineTool({
  name: 'get_patch',
  title: 'Patch of a job',
  description: 'Changes that a finished job made to its workspace, as a git patch.',
  annotations: reads(),
  input: z.strictObject({ job_id: jobId, ...range }),
  run: async (input, { deputy }) => {
    const id = await fullJobId(deputy, input.job_id)
    return readRange(id, await deputy.openPatch(id), input)
  },
})

const readRange = async (
  id: string,
  file: OpenArtifact,
  { offset = 0, max_bytes = DEFAULT_BYTES }: { offset?: number | undefined; max_bytes?: number | undefined },
) => {
  if (offset > file.size)
    throw new AppError('invalid', `Offset ${offset} is past the end of ${file.path} (${file.size} bytes).`, {
      hint: 'Start at 0, or at the next_offset of an earlier answer.',
    })
  const end = Math.min(file.size, offset + max_bytes)
  const chunks: Uint8Array[] = []
  if (end > offset) for await (const chunk of file.read({ start: offset, end: end - 1 })) chunks.push(chunk)
  const bytes = Buffer.concat(chunks)
  const text = textOf(bytes, end === file.size)
  const next = offset + (text === undefined ? bytes.length : Buffer.byteLength(text))
  return {
    data: {
      job_id: id,
      path: file.path,
      size: file.size,
      ...(text === undefined ? { base64: bytes.toString('base64') } : { text }),
      ...prune({ next_offset: next < file.size ? next : null }),
    },
  }
}

/** Decodes up to the last complete line, so that no page ends within a line. Undefined for binary content. */
const textOf = (bytes: Buffer, isEnd: boolean): string | undefined => {
  const newline = bytes.lastIndexOf(10)
  const whole = isEnd || newline < 0 ? bytes : bytes.subarray(0, newline + 1)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(whole)
  } catch {
    return undefined
  }
}
