import { parentPort, workerData } from 'node:worker_threads'
import { type CandidatesTask, type PatchTask, patchTasks } from './patch-tasks.ts'

// Entry point of a worker thread that runs one task.
const { name, task } = workerData as
  | { name: 'candidates'; task: CandidatesTask }
  | { name: 'patch'; task: PatchTask }
parentPort!.postMessage(await (name === 'candidates' ? patchTasks.candidates(task) : patchTasks.patch(task)))
