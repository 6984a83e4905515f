import { AppError } from '../jobs/errors.ts'
import type { Job } from '../jobs/job.ts'
import { FOLLOWS_LABEL, isOwnLabel, WORKSPACE_LABEL } from '../jobs/labels.ts'
import { LIMITS } from '../jobs/limits.ts'
import { type Decision, followUpTask, PREVIOUS_PATCH, type Review } from '../jobs/review.ts'
import { isTerminal } from '../jobs/states.ts'
import type { LocalDirectories } from './accept-job.ts'
import type { Deputy, ReviewView } from './deputy.ts'
import type { EngineContext } from './engine-context.ts'
import type { JobLookup } from './job-lookup.ts'
import { noPatch, notFinished } from './request-errors.ts'

type ReviewOperations = Pick<Deputy, 'review' | 'markViewed' | 'applyChanges' | 'rejectChanges' | 'handBack'>

/** Applies a patch to a directory and returns the changed files. Injected, because it writes files of the user. */
export type ApplyPatch = (patch: Uint8Array, directory: string) => Promise<readonly string[]>

export interface ReviewParts {
  readonly lookup: JobLookup
  readonly local: LocalDirectories & { readonly applyPatch: ApplyPatch }
  readonly submit: Deputy['submit']
}

/** The operations that show the changes of a job to a person and record the decision. */
export const reviewOperations = (
  { store, blobs, changes, clock }: EngineContext,
  { lookup: { getJob }, local, submit }: ReviewParts,
): ReviewOperations => {
  const reviewed = async (id: string): Promise<Job> => {
    const job = await getJob(id)
    if (!isTerminal(job.state)) throw notFinished(job)
    if (!job.result?.patch) throw noPatch(id)
    return job
  }
  const readPatch = async (job: Job): Promise<Uint8Array> => {
    const chunks: Uint8Array[] = []
    for await (const chunk of blobs.read(job.result!.patch!.sha256)) chunks.push(chunk)
    return Buffer.concat(chunks)
  }
  /** The directory that the workspace was copied from, if it is on this computer. */
  const sourceOf = async ({ labels }: Job): Promise<string | null> => {
    const path = labels[WORKSPACE_LABEL]
    if (!path?.startsWith('/')) return null
    return local.checkDirectory(path, 'any').catch(() => null)
  }
  const view = async (job: Job, review: Review | undefined): Promise<ReviewView> => ({
    job_id: job.id,
    directory: await sourceOf(job),
    viewed: review?.viewed ?? [],
    decision: review?.decision ? decisionView(review.decision) : null,
  })
  const decide = async (job: Job, decision: Omit<Decision, 'at'>): Promise<ReviewView> => {
    const at = clock.now()
    const review = await store.changeReview(
      job.id,
      ({ viewed }) => ({ viewed, decision: { ...decision, at } }),
      { type: 'review', at, data: { ...decision } },
    )
    changes.emit({ jobId: job.id, kind: 'state' })
    return view(job, review)
  }

  return {
    review: async id => {
      const job = await reviewed(id)
      return view(job, await store.getReview(job.id))
    },
    markViewed: async (id, path, isViewed) => {
      const job = await reviewed(id)
      const review = await store.changeReview(job.id, ({ viewed, decision }) => {
        const others = viewed.filter(one => one !== path)
        return { viewed: isViewed ? [...others, path].slice(-MAX_VIEWED) : others, decision }
      })
      return view(job, review)
    },
    applyChanges: async (id, by) => {
      const job = await reviewed(id)
      const directory = await sourceOf(job)
      if (directory === null)
        throw new AppError('not_found', `The workspace of job ${job.id} is not on this computer.`, {
          hint: `Run in its directory: deputy patch --apply . ${job.id}`,
        })
      await local.applyPatch(await readPatch(job), directory)
      return decide(job, { verdict: 'applied', by, directory })
    },
    rejectChanges: async (id, by, comment) =>
      decide(await reviewed(id), { verdict: 'rejected', by, ...(comment && { comment }) }),
    handBack: async (id, by, comment) => {
      const job = await reviewed(id)
      if (job.agentType === 'script')
        throw new AppError('unsupported', `Job ${job.id} runs a script, which cannot act on a comment.`, {
          hint: 'Change its task and run it again: deputy open, Edit and run.',
        })
      // Its workspace has the files of the needed jobs already.
      const { idempotency_key, machine, labels, needs, ...manifest } = (await store.getManifest(job.id))!
      const files = (manifest.files ?? []).filter(file => file.path !== PREVIOUS_PATCH)
      const text = new TextDecoder().decode(await readPatch(job))
      const followUp = await submit(
        {
          ...manifest,
          task: followUpTask(manifest.task, comment),
          files: [...files, { path: PREVIOUS_PATCH, text }].slice(-LIMITS.files),
          labels: { ...withoutOwn(labels), [FOLLOWS_LABEL]: job.id },
        },
        by,
        // The label was checked when the job was submitted.
        { directories: 'any' },
      )
      return decide(job, { verdict: 'handed_back', by, comment, followUp: followUp.job_id })
    },
  }
}

const MAX_VIEWED = 10_000

/** The workspace stays the same; other labels of Deputy describe the first job only. */
const withoutOwn = (labels: Readonly<Record<string, string>> = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(labels).filter(([name]) => name === WORKSPACE_LABEL || !isOwnLabel(name)))

const decisionView = ({ verdict, by, at, comment, directory, followUp }: Decision) => ({
  verdict,
  by,
  at: new Date(at).toISOString(),
  comment: comment ?? null,
  directory: directory ?? null,
  follow_up: followUp ?? null,
})
