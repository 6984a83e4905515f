import { globMatcher } from '../jobs/artifact-globs.ts'
import { BATCH } from '../jobs/batch-command.ts'
import type { Job } from '../jobs/job.ts'
import { isTerminal } from '../jobs/states.ts'
import type { Store } from '../ports.ts'
import type { BatchMember, Deputy } from './deputy.ts'
import type { EngineContext } from './engine-context.ts'
import { followEvents, followOutput, waitForStatus } from './follow-job.ts'
import type { JobLookup } from './job-lookup.ts'
import { batchMember, jobSummary, resourceView } from './job-views.ts'
import { listQuery } from './list-query.ts'
import { excerpt, readPage } from './output-pages.ts'
import { noArtifact, noJob, noPatch, notFinished } from './request-errors.ts'

const PAGE_JOBS = 20
const MAX_PAGE_JOBS = 1000
const DAY_MS = 24 * 3_600_000
const RESULT_BYTES = 64 * 1024
const PAGE_BYTES = 256 * 1024

type OutputOperations = Pick<Deputy, 'output' | 'follow' | 'events' | 'followEvents'>
type ReadOperations = Pick<
  Deputy,
  'get' | 'manifest' | 'wait' | 'list' | 'result' | 'artifacts' | 'openArtifact' | 'openPatch' | 'stats'
>

/** The operations that read the output and the events of jobs. */
export const outputOperations = (
  { store, changes }: EngineContext,
  { getJob }: JobLookup,
): OutputOperations => ({
  output: async (id, { cursor = 0, maxBytes = PAGE_BYTES, waitMs = 0, signal }) => {
    const listener = changes.listen(id)
    try {
      const page = await readPage(store, await getJob(id), { cursor, maxBytes })
      if (page.pieces.length > 0 || page.done || waitMs === 0) return page
      await listener.wait(waitMs, signal)
      return await readPage(store, await getJob(id), { cursor: page.next_cursor, maxBytes })
    } finally {
      listener.close()
    }
  },
  follow: (id, { cursor = 0, signal }) =>
    followOutput(
      changes,
      async at => readPage(store, await getJob(id), { cursor: at, maxBytes: PAGE_BYTES }),
      {
        id,
        cursor,
        signal,
      },
    ),
  events: async (id, { after = 0, limit = 1000 }) =>
    store.events({ jobId: (await getJob(id)).id, after, limit }),
  followEvents: request =>
    followEvents(
      changes,
      store,
      request,
      async () => request.id !== undefined && isTerminal((await getJob(request.id)).state),
    ),
})

/** The operations that read jobs and their results. */
export const readOperations = (context: EngineContext, { getJob, view }: JobLookup): ReadOperations => {
  const { store, changes, clock } = context
  return {
    get: async id => view(await getJob(id)),
    manifest: async id => {
      const { id: known } = await getJob(id)
      const manifest = await store.getManifest(known)
      if (manifest === undefined) throw noJob(id)
      return manifest
    },
    wait: async (id, wait) => view(await waitForStatus(changes, () => getJob(id), wait)),
    list: async filter => {
      const limit = Math.min(Math.max(filter.limit ?? PAGE_JOBS, 1), MAX_PAGE_JOBS)
      const jobs = await store.listJobs({ ...listQuery(filter), limit: limit + 1 })
      const page = jobs.slice(0, limit)
      return { jobs: page.map(jobSummary), next_cursor: jobs.length > limit ? page.at(-1)!.id : null }
    },
    result: async (id, { maxBytes = RESULT_BYTES }) => {
      const job = await getJob(id)
      if (!isTerminal(job.state)) throw notFinished(job)
      const outcome = job.result
      return {
        ...(await view(job)),
        ...(await excerpt(store, job, maxBytes)),
        artifacts: outcome?.artifacts ?? [],
        skipped_artifacts: outcome?.skippedArtifacts ?? [],
        ...(job.runtime === BATCH
          ? { members: await membersOf(store, job.id) }
          : outcome && (await unmatchedGlobs(store, job.id, outcome))),
        patch: outcome?.patch ?? null,
        usage: outcome?.usage ?? null,
        isolation: outcome?.isolation ?? [],
        limits_hit: outcome?.limitsHit ?? [],
        resources: outcome?.resources?.map(resourceView) ?? null,
        executed_on: outcome?.executedOn ?? null,
        image: outcome?.image ?? null,
      }
    },
    artifacts: async id => (await getJob(id)).result?.artifacts ?? [],
    openArtifact: async (id, path) => {
      const artifacts = (await getJob(id)).result?.artifacts ?? []
      const artifact = artifacts.find(one => one.path === path)
      if (artifact === undefined)
        throw noArtifact(
          id,
          path,
          artifacts.map(one => one.path),
        )
      return { ...artifact, read: range => context.blobs.read(artifact.sha256, range) }
    },
    openPatch: async id => {
      const patch = (await getJob(id)).result?.patch
      if (!patch) throw noPatch(id)
      return { path: 'changes.patch', ...patch, read: range => context.blobs.read(patch.sha256, range) }
    },
    stats: async () => {
      const oldest = await store.oldestPending()
      const machines: Record<string, number> = {}
      for (const { runtime, state } of await store.listMachines())
        machines[`${runtime}/${state}`] = (machines[`${runtime}/${state}`] ?? 0) + 1
      return {
        jobs: await store.counts(),
        machines,
        last_day: await store.endedSince(clock.now() - DAY_MS),
        oldest_pending_seconds: oldest === null ? 0 : Math.max(0, clock.now() - oldest) / 1000,
      }
    },
  }
}

/** More than a batch of agents has; a batch of commands may be larger. */
const MAX_MEMBERS = 100

const membersOf = async (store: Pick<Store, 'listJobs'>, parentId: string): Promise<BatchMember[]> =>
  (await store.listJobs({ parentId, sort: 'oldest', limit: MAX_MEMBERS })).map(batchMember)

/** A glob that matched nothing is often misspelt, and the job does not fail because of it. */
const unmatchedGlobs = async (
  store: Pick<Store, 'getManifest'>,
  id: string,
  { artifacts, skippedArtifacts = [] }: NonNullable<Job['result']>,
): Promise<{ unmatched_artifacts?: string[] }> => {
  const globs = (await store.getManifest(id))?.artifacts ?? []
  const paths = [...artifacts, ...skippedArtifacts].map(({ path }) => path)
  const unmatched = globs.filter(glob => {
    const { matches } = globMatcher([glob])
    return !paths.some(path => matches(path))
  })
  return unmatched.length === 0 ? {} : { unmatched_artifacts: unmatched }
}
