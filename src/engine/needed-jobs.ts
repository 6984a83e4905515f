import { AppError, toAppError } from '../jobs/errors.ts'
import type { BlobRef } from '../jobs/job.ts'
import { NEEDS_DIRECTORY } from '../jobs/paths.ts'
import { parseSize } from '../jobs/sizes.ts'
import { isTerminal, type JobState } from '../jobs/states.ts'
import type { NeededJob } from '../ports.ts'
import type { EngineContext } from './engine-context.ts'

/** Starts jobs when the jobs they need have succeeded, and fails them when one of these can no longer succeed. */
export interface NeededJobs {
  start(): Promise<void>
  /** A job that needs these was stored. */
  add(ids: readonly string[]): void
  /** Resolves when the current check has ended. */
  idle(): Promise<void>
}

/** Packs a workspace tar, or null, with more files below a directory. Injected, because the engine has no tar. */
export type AddToWorkspace = (
  workspace: string | null,
  directory: string,
  files: readonly { readonly path: string; readonly size: number; read(): AsyncIterable<Uint8Array> }[],
) => AsyncIterable<Uint8Array>

/** Repeats a release that failed, as on a full disk. */
const RETRY_MS = 5000

export const createNeededJobs = (
  context: EngineContext,
  { addToWorkspace, onReleased }: { addToWorkspace: AddToWorkspace; onReleased(): void },
): NeededJobs => {
  const { store, changes, clock, config, closing, log } = context
  /** Other jobs change often; only changes of these are worth a query. */
  const needed = new Set<string>()
  let checking: Promise<void> | undefined
  let again = false

  const fail = async (jobId: string, message: string): Promise<void> => {
    const at = clock.now()
    await store.move(
      jobId,
      'failed',
      {
        completedAt: at,
        error: { code: 'needs', message, hint: 'Read why it ended so, then submit both again.' },
      },
      { at, data: { reason: message } },
      { from: ['pending'] },
    )
    changes.emit({ jobId, kind: 'state' })
  }

  /** The workspace of the job with the artifacts of the needed jobs; undefined when these have none. */
  const packArtifacts = async (jobId: string, ids: readonly string[]): Promise<BlobRef | undefined> => {
    const results = await Promise.all(ids.map(async id => ({ id, result: (await store.getJob(id))?.result })))
    const files = results.flatMap(({ id, result }) =>
      (result?.artifacts ?? []).map(({ path, size, sha256 }) => ({
        path: `${NEEDS_DIRECTORY}/${id}/${path}`,
        size,
        read: () => context.blobs.read(sha256),
      })),
    )
    if (files.length === 0) return undefined
    const blob = (await store.getManifest(jobId))?.workspace?.blob
    if (blob !== undefined) await context.blobs.fetch(blob)
    const tar = addToWorkspace(blob === undefined ? null : context.blobs.path(blob), NEEDS_DIRECTORY, files)
    return context.blobs.put(tar, parseSize(config.limits.upload), jobId)
  }

  const release = async (jobId: string, ids: readonly string[]): Promise<void> => {
    const workspace = await packArtifacts(jobId, ids)
    const at = clock.now()
    const { queueTimeout = config.defaults.queueTimeout } = (await store.getManifest(jobId)) ?? {}
    const queueUntil = at + queueTimeout * 1000
    if (!(await store.releaseJob(jobId, { at, queueUntil, ...(workspace && { workspace }) }))) return
    changes.emit({ jobId, kind: 'state' })
    onReleased()
  }

  const settle = async (jobId: string, needs: readonly NeededJob[]): Promise<void> => {
    const unmet = needs.find(({ state }) => state !== 'success')
    if (unmet !== undefined) return fail(jobId, unmetNeed(unmet.neededId, unmet.state))
    try {
      await release(
        jobId,
        needs.map(({ neededId }) => neededId),
      )
    } catch (error) {
      if (toAppError(error).code !== 'too_large') throw error
      await fail(
        jobId,
        `The workspace and the artifacts of the needed jobs exceed limits.upload (${config.limits.upload}).`,
      )
    }
  }

  const check = async (): Promise<void> => {
    do {
      again = false
      const waiting = new Map<string, NeededJob[]>()
      for (const need of await store.settledNeeds())
        waiting.set(need.jobId, [...(waiting.get(need.jobId) ?? []), need])
      for (const [jobId, needs] of waiting) {
        if (closing.aborted) return
        await settle(jobId, needs).catch(error => {
          if (!closing.aborted)
            log.error({ job: jobId, err: error }, 'cannot start a job that waited for others')
        })
        for (const { neededId, state } of needs)
          if (state === null || isTerminal(state)) needed.delete(neededId)
      }
    } while (again && !closing.aborted)
  }

  const wake = (): void => {
    if (closing.aborted) return
    again = true
    checking ??= check()
      .catch(error => {
        if (!closing.aborted) log.error({ err: error }, 'cannot read which jobs wait for others')
      })
      .finally(() => {
        checking = undefined
      })
  }

  return {
    start: async () => {
      for (const id of await store.neededJobs()) needed.add(id)
      const stopListening = changes.onChange(({ jobId, kind }) => {
        if (kind === 'state' && needed.has(jobId)) wake()
      })
      const timer = setInterval(wake, RETRY_MS)
      closing.addEventListener(
        'abort',
        () => {
          clearInterval(timer)
          stopListening()
        },
        { once: true },
      )
      wake()
    },
    add: ids => {
      for (const id of ids) needed.add(id)
      wake()
    },
    idle: async () => checking,
  }
}

const ENDS: Partial<Record<JobState, string>> = {
  failed: 'has failed',
  timeout: 'has timed out',
  cancelled: 'was cancelled',
}

const unmetNeed = (id: string, state: JobState | null): string =>
  `Job ${id}, which this job needs, ${(state && ENDS[state]) ?? 'was deleted'}.`

/** Rejects ids of jobs that do not exist. */
export const checkNeeds = async ({ store }: EngineContext, ids: readonly string[] = []): Promise<void> => {
  for (const id of ids)
    if ((await store.getJob(id)) === undefined)
      throw new AppError('not_found', `No job '${id}', which 'needs' names.`, {
        hint: 'deputy list (the tool list_jobs) shows the jobs. Old jobs are deleted in time.',
      })
}
