/** The user's review of a job's changes: viewed files and the decision. */
export interface Review {
  /** Paths of the patch that the reviewer has marked as viewed. */
  readonly viewed: readonly string[]
  readonly decision: Decision | null
}

export interface Decision {
  readonly verdict: Verdict
  readonly by: string
  /** Wall clock, in milliseconds. */
  readonly at: number
  readonly comment?: string
  /** Where the patch was applied. */
  readonly directory?: string
  /** The job that continues the work after `handed_back`. */
  readonly followUp?: string
}

export const VERDICTS = ['applied', 'rejected', 'handed_back'] as const
export type Verdict = (typeof VERDICTS)[number]

/** Where the follow-up job finds the changes of the job before it. */
export const PREVIOUS_PATCH = '.deputy/previous.patch'

/** The task of a follow-up job: the same task, and what the reviewer says about the changes so far. */
export const followUpTask = (task: string, comment: string): string => `${task}

A reviewer has looked at a previous attempt and handed it back. Its changes are not in the workspace: they are in
${PREVIOUS_PATCH}. Apply them first (git apply ${PREVIOUS_PATCH}), then do what the review asks for:

${comment}`
