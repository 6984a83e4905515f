import { Worker } from 'node:worker_threads'
import { AppError } from '../jobs/errors.ts'
import { compiledFile } from './compiled-file.ts'
import type { PatchTasks } from './patch-tasks.ts'

const LIMIT_MS = 120_000
const MEMORY_MB = 512

/**
 * Runs patch tasks in a worker thread with limits of time and memory: rules and contents come from an untrusted
 * machine and must not block the daemon.
 */
export const patchThread: PatchTasks = {
  candidates: task => runInThread('candidates', task),
  patch: task => runInThread('patch', task),
}

const runInThread = <T>(name: keyof PatchTasks, task: unknown): Promise<T> =>
  new Promise<T>((resolve, reject) => {
    const worker = new Worker(compiledFile('files/patch-worker.js'), {
      workerData: { name, task },
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    })
    const timer = setTimeout(() => {
      reject(new AppError('timeout', `The patch took longer than ${LIMIT_MS / 1000} s.`))
      void worker.terminate()
    }, LIMIT_MS)
    worker.once('message', (result: T) => resolve(result))
    worker.once('error', reject)
    worker.once('exit', () => {
      clearTimeout(timer)
      reject(new AppError('internal', 'The patch worker exited without a result.'))
    })
  })
