import { type BaseTree, readBase, readBaseContents } from './base-tree.ts'
import { gitPatch } from './git-patch.ts'
import {
  type Change,
  type ChangeCandidates,
  type FinalWorkspace,
  findCandidates,
  patchedFiles,
} from './workspace-changes.ts'

export interface CandidatesTask extends Omit<FinalWorkspace, 'base'> {
  /** The tar that the workspace started from, if any. */
  readonly basePath: string | null
}

export interface PatchTask {
  readonly basePath: string | null
  readonly changes: readonly Change[]
  /** Current contents of the changed files. */
  readonly contents: ReadonlyMap<string, Uint8Array>
  readonly maxBytes: number
}

/** The slow steps of a patch, which work on untrusted data of a machine. */
export interface PatchTasks {
  candidates(task: CandidatesTask): Promise<ChangeCandidates & { readonly base: BaseTree }>
  /** Undefined when the patch would be too large. */
  patch(task: PatchTask): Promise<Uint8Array | undefined>
}

/** Runs the tasks in the current thread. */
export const patchTasks: PatchTasks = {
  candidates: async ({ basePath, ...final }) => {
    const base = await readBase(basePath)
    return { ...findCandidates({ ...final, base }), base }
  },
  patch: async ({ basePath, changes, contents, maxBytes }) => {
    const before = await readBaseContents(basePath, new Set(changes.map(change => change.path)))
    return gitPatch(patchedFiles(changes, before, contents), maxBytes)
  },
}
