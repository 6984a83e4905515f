import { text } from 'node:stream/consumers'
import type { Client } from '../../client/daemon-client.ts'
import type { JobResult, JobView } from '../../engine/deputy.ts'
import { visible } from '../../jobs/visible-text.ts'
import type { Context } from '../context.ts'
import type { Colors } from '../terminal/colors.ts'
import { duration, phases, shortId, statusColor, statusMark } from '../terminal/format.ts'
import { createSafeOutput } from '../terminal/safe-output.ts'
import type { Column } from '../terminal/table.ts'
import type { DemoJob } from './jobs.ts'

export interface Played {
  readonly demo: DemoJob
  readonly result: JobResult
}

/** Runs one job of the demo and prints its output behind a bar. */
export const playJob = async (
  context: Context,
  client: Client,
  demo: DemoJob,
  signal: AbortSignal,
): Promise<Played> => {
  const { bold, dim } = context.colors
  await context.print(`\n${bold(demo.title)}\n`)
  const job = await client.submit(demo.manifest, signal)
  let line = ''
  const flush = async (text: string, color: (text: string) => string): Promise<void> => {
    const lines = (line + text).split('\n')
    line = lines.pop() ?? ''
    for (const whole of lines) await context.print(`  ${dim('│')} ${color(whole)}\n`)
  }
  const safe = createSafeOutput({ colors: false })
  for await (const page of client.follow(job.job_id, { signal }))
    for (const piece of page.pieces)
      if ('data' in piece)
        await flush(safe.push(piece.data), piece.stream === 'stderr' ? context.colors.yellow : text => text)
  await flush(`${safe.end()}${line === '' ? '' : '\n'}`, text => text)
  const result = await client.result(job.job_id)
  await context.print(`  ${summary(result, context.colors)} ${dim(`— ${demo.says}`)}\n`)
  for (const artifact of result.artifacts) {
    const { bytes } = await client.openArtifact(job.job_id, artifact.path, signal)
    const content = await text(bytes)
    await context.print(
      `  ${dim('brought back')} ${visible(artifact.path)}${dim(':')} ${visible(content.trim())}\n`,
    )
  }
  if (result.error !== null && !demo.expect(result))
    await context.print(`  ${visible(result.error.message)}\n  ${visible(result.error.hint ?? '')}\n`)
  return { demo, result }
}

const summary = (job: JobView, colors: Colors): string => {
  const end = job.exit_code === null ? (job.signal ?? '') : `exit ${job.exit_code}`
  return statusColor(
    job.status,
    colors,
  )(`${statusMark(job.status)} ${[job.status, end].filter(Boolean).join(', ')}`)
}

export const printSummary = async (context: Context, played: readonly Played[]): Promise<number> => {
  const { colors } = context
  const columns: Column<Played>[] = [
    { title: 'JOB', value: ({ result }) => shortId(result.job_id) },
    {
      title: 'STATUS',
      value: ({ result }) => `${statusMark(result.status)} ${result.status}`,
      paint: (text, { result }) => statusColor(result.status, colors)(text),
    },
    {
      title: 'EXIT',
      value: ({ result }) => String(result.exit_code ?? result.signal ?? '–'),
      align: 'right',
    },
    { title: 'TIME', value: ({ result }) => duration(result.duration_seconds), align: 'right' },
    { title: 'PHASES', value: ({ result }) => phases(result.phases) },
  ]
  return context.printTable(played, columns)
}
