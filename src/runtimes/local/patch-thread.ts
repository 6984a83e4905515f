import { Worker } from 'node:worker_threads'
import { AppError } from '../../jobs/errors.ts'
import { compiledFile } from './compiled-file.ts'
import type { PatchTasks } from './patch-tasks.ts'

const LIMIT_MS = 120_000
const MEMORY_MB = 512

/**
 * The work on a patch in a thread of its own, with a limit of time and memory: the rules and the contents come from
 * a machine that is not trusted, and nobody else shall wait for them.
 */
export const patchThread: PatchTasks = {
  candidates: task => runInThread('candidates', task),
  patch: task => runInThread('patch', task),
}

const runInThread = <T>(name: keyof PatchTasks, task: unknown): Promise<T> =>
  new Promise<T>((resolve, reject) => {
    const worker = new Worker(compiledFile('./patch-worker.js'), {
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
      reject(new AppError('internal', 'The thread that makes patches ended without a result.'))
    })
  })
