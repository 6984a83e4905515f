import { gitPatch } from '../../workspace/git-patch.ts'
import { type BaseTree, readBase, readBaseContents } from './base-tree.ts'
import {
  type Change,
  type ChangeCandidates,
  type FinalWorkspace,
  findCandidates,
  patchedFiles,
} from './workspace-changes.ts'

export interface CandidatesTask extends Omit<FinalWorkspace, 'base'> {
  /** The tar that the workspace began as; null when it began as none. */
  readonly basePath: string | null
}

export interface PatchTask {
  readonly basePath: string | null
  readonly changes: readonly Change[]
  /** What they hold now. */
  readonly contents: ReadonlyMap<string, Uint8Array>
  readonly maxBytes: number
}

/** The parts of a patch that take time, on data that a machine had a hand in. */
export interface PatchTasks {
  candidates(task: CandidatesTask): Promise<ChangeCandidates & { readonly base: BaseTree }>
  /** Undefined when it would be too large. */
  patch(task: PatchTask): Promise<Uint8Array | undefined>
}

/** Right here: for a process or thread that has nothing else to do. */
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
