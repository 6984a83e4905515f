import { parentPort, workerData } from 'node:worker_threads'
import { type PatchTask, patchWork, type SuspectsTask } from './patch-tasks.ts'

// A thread for one task, alone in its file.
const { name, task } = workerData as
  | { name: 'suspects'; task: SuspectsTask }
  | { name: 'patch'; task: PatchTask }
parentPort!.postMessage(await (name === 'suspects' ? patchWork.suspects(task) : patchWork.patch(task)))
