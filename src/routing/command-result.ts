import type { Deputy, JobView, OutputPiece } from '../engine/deputy.ts'
import { messageWithHint } from '../jobs/errors.ts'
import { aroundOmission, fromFirstLine, upToLastLine } from '../jobs/line-borders.ts'
import { isTerminal } from '../jobs/states.ts'

const ANSWER_BYTES = 48 * 1024

type JobReader = Pick<Deputy, 'get' | 'result' | 'output'>

export interface CommandResult extends Record<string, unknown> {
  success: boolean
  executed_on: string | null
  stdout: string
  stderr: string
  return_code: number | null
  task_id: string
  status: string
}

/** The result of a routed command, in the format of the cluster tools. Success means exit status 0. */
export const commandResult = async (
  deputy: JobReader,
  id: string,
  localName: string,
  signal: AbortSignal,
  /** Maximum output, both streams together. */
  maxBytes = ANSWER_BYTES,
): Promise<CommandResult> => {
  const job = await deputy.get(id)
  const result = isTerminal(job.status) ? await deputy.result(id, { maxBytes: 1 }) : undefined
  const streams = await readStreams(deputy, id, maxBytes, signal)
  const ran = result ?? job
  const changed = result?.patch && result.patch.size > 0
  return {
    success: ran.status === 'success' && ran.exit_code === 0,
    executed_on: result?.executed_on?.node ?? (job.runtime === 'host' ? localName : (job.where ?? null)),
    stdout: streams.stdout,
    stderr: streams.stderr,
    return_code: ran.exit_code,
    task_id: id,
    status: ran.status,
    ...(streams.skipped > 0 && { skipped_bytes: streams.skipped }),
    ...(result?.executed_on?.because && { why: result.executed_on.because }),
    ...errorOf(ran),
    ...(changed && { changes: `Run deputy patch ${id} --apply to apply the changed files.` }),
    ...(!result && { next: `Still running. Call get_job_status or get_job_result with job_id ${id}.` }),
  }
}

const errorOf = ({ error }: JobView): Record<string, unknown> => {
  if (!error || error.code === 'exit_code') return {}
  return { error: messageWithHint(error) }
}

/** Returns the beginning and the end of each stream, because the answer is read by a model. */
const readStreams = async (
  deputy: JobReader,
  id: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<{ stdout: string; stderr: string; skipped: number }> => {
  const tailBytes = Math.floor(maxBytes / 3)
  const head = await deputy.output(id, { cursor: 0, maxBytes: maxBytes - tailBytes, signal })
  const rest: OutputPiece[] = []
  let skipped = 0
  if (!head.done) {
    const tail = await deputy.output(id, { cursor: -tailBytes, maxBytes: tailBytes, signal })
    const from = tail.pieces[0]?.offset ?? head.next_cursor
    skipped = Math.max(0, from - head.next_cursor)
    rest.push(...tail.pieces.filter(piece => piece.offset >= head.next_cursor))
  }
  for (const piece of [...head.pieces, ...rest]) if ('skipped' in piece) skipped += piece.skipped
  const out = [bytesOf(head.pieces, 'stdout'), bytesOf(rest, 'stdout')] as const
  const err = [bytesOf(head.pieces, 'stderr'), bytesOf(rest, 'stderr')] as const
  if (skipped === 0) return { stdout: textOf(out), stderr: textOf(err), skipped }
  const lines = [out, err].map(([first, last]) => [upToLastLine(first), fromFirstLine(last)] as const)
  skipped += sizeOf([...out, ...err]) - sizeOf(lines.flat())
  const [stdout = '', stderr = ''] = lines.map(([first, last]) =>
    sizeOf([first, last]) === 0 ? '' : aroundOmission(first, skipped, last),
  )
  return { stdout, stderr, skipped }
}

const textOf = (parts: readonly Uint8Array[]): string => Buffer.concat(parts).toString('utf8')

const sizeOf = (parts: readonly Uint8Array[]): number => parts.reduce((sum, part) => sum + part.length, 0)

const bytesOf = (pieces: readonly OutputPiece[], stream: 'stdout' | 'stderr'): Buffer =>
  Buffer.concat(pieces.flatMap(piece => (isOf(piece, stream) ? [piece.data] : [])))

const isOf = (
  piece: OutputPiece,
  stream: 'stdout' | 'stderr',
): piece is Extract<OutputPiece, { stream: string }> => 'stream' in piece && piece.stream === stream
