import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '../../src/client/daemon-client.ts'
import type { JobView } from '../../src/engine/deputy.ts'
import { AppError } from '../../src/jobs/errors.ts'
import { patiently } from './patience.ts'
import type { Plan } from './plan.ts'
import type { World } from './world.ts'

/** How a job ended: as planned, or lost with its machine while that could happen. */
export type Ending = 'planned' | 'lost'

interface Watched {
  readonly world: World
  readonly client: Client
  readonly plan: Plan
  readonly id: string
  /** When the job was first handed over. */
  readonly from: number
  readonly signal: AbortSignal
}

/** Follows a job to its end and checks all that came of it, while faults go on. */
export const checkJob = async (watched: Watched): Promise<Ending> => {
  const { world, client, plan, id, signal } = watched
  if (plan.cancelMs !== undefined) {
    await sleep(plan.cancelMs)
    await patiently(() => client.cancel(id), signal).catch(ignoreFinished)
  }
  const view = await ended(watched)
  const to = performance.now()
  world.journal.note(`job ${plan.key} ${id} ended: ${view.status} ${view.error?.code ?? ''}`)
  const printed = await patiently(() => outputOf(client, id, signal), signal)
  const isPlanned = view.status === plan.status && (plan.kind !== 'fail' || view.error?.code === 'exit_code')
  if (!isPlanned) {
    const excused =
      ['lost', 'machine', 'stale'].includes(view.error?.code ?? '') &&
      world.damage.during(plan.provider, watched.from, to)
    if (!excused) complain(watched, `ended as ${view.status}, not ${plan.status}: ${view.error?.message}`)
  }
  const isWhole = isPlanned && plan.exitCode !== null
  // A full disk costs output, never the job: what is missing must be told.
  const hasGaps = printed.skipped > 0 && world.damage.during('disk', watched.from, to)
  if (isWhole && hasGaps && size(printed) + printed.skipped !== size(plan))
    complain(
      watched,
      `${printed.skipped} bytes are said to be missing of ${size(plan)}, ${size(printed)} are there`,
    )
  for (const stream of ['stdout', 'stderr'] as const) {
    const [is, should] = [printed[stream], plan[stream]]
    if (hasGaps ? !isSubsequence(is, should) : isWhole ? is !== should : !should.startsWith(is))
      complain(
        watched,
        `${stream} has ${is.length} bytes instead of ${should.length}: ${difference(is, should)}`,
      )
  }
  if (isWhole) {
    if (view.exit_code !== plan.exitCode) complain(watched, `exit code ${view.exit_code}`)
    await checkArtifacts(watched, to)
  }
  return isPlanned ? 'planned' : 'lost'
}

/** A job may have been lost before it could be cancelled. */
const ignoreFinished = (error: unknown): void => {
  if (!(error instanceof AppError && error.code === 'conflict')) throw error
}

const ended = async ({ client, id, plan, signal }: Watched): Promise<JobView> => {
  let view: JobView | undefined
  try {
    for (;;) {
      view = await patiently(() => client.wait(id, { timeoutMs: 10_000, signal }), signal)
      if (view.completed_at !== null) return view
    }
  } catch (error) {
    if (!signal.aborted) throw error
    throw new Error(`${plan.key} ${id} never ended: ${view?.status} ${view?.progress ?? ''}`)
  }
}

const outputOf = async (client: Client, id: string, signal: AbortSignal) => {
  const chunks = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
  let skipped = 0
  for await (const page of client.follow(id, { signal }))
    for (const piece of page.pieces)
      if ('data' in piece) chunks[piece.stream].push(piece.data)
      else skipped += piece.skipped
  return {
    skipped,
    stdout: Buffer.concat(chunks.stdout).toString(),
    stderr: Buffer.concat(chunks.stderr).toString(),
  }
}

const size = ({ stdout, stderr }: { stdout: string; stderr: string }): number => stdout.length + stderr.length

const isSubsequence = (is: string, should: string): boolean => {
  let at = 0
  for (const char of should) if (char === is[at]) at++
  return at === is.length
}

const checkArtifacts = async (watched: Watched, to: number): Promise<void> => {
  const { world, client, id, plan, signal } = watched
  const listed = await patiently(() => client.artifacts(id), signal)
  const names = listed.map(({ path }) => path).sort()
  // Its machine was removed after the command had ended: what is missing must be told.
  if (names.length === 0 && world.damage.during(plan.provider, watched.from, to)) {
    const { skipped_artifacts } = await patiently(() => client.result(id), signal)
    if (skipped_artifacts.length > 0) return
  }
  if (names.join() !== [...plan.artifacts.keys()].sort().join())
    return complain(watched, `has the artifacts ${names.join(', ') || 'none'}`)
  for (const [path, sha256] of plan.artifacts) {
    const actual = await patiently(async () => {
      const hash = createHash('sha256')
      for await (const chunk of (await client.openArtifact(id, path, signal)).bytes) hash.update(chunk)
      return hash.digest('hex')
    }, signal)
    if (actual !== sha256) complain(watched, `the artifact ${path} has other content`)
  }
}

const complain = ({ world, plan, id }: Watched, text: string): void =>
  world.journal.violation(`${plan.provider} ${plan.kind} ${plan.key} ${id}: ${text}`)

const difference = (is: string, should: string): string => {
  let at = 0
  while (at < is.length && is[at] === should[at]) at++
  return `at ${at} ${JSON.stringify(is.slice(at, at + 40))} instead of ${JSON.stringify(should.slice(at, at + 40))}`
}
