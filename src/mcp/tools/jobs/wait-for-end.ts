import type { JobView } from '../../../engine/deputy.ts'
import type { ToolContext } from '../../tool.ts'

/** Below the usual timeout of clients, 60 s per call. */
export const MAX_WAIT_SECONDS = 50

const REPORT_EVERY_MS = 5000

/** Waits for the end of a job and reports its progress to clients that asked for it. */
export const waitForEnd = async (
  id: string,
  seconds: number,
  { deputy, signal, progress }: ToolContext,
): Promise<JobView> => {
  const waiting = deputy.wait(id, { timeoutMs: seconds * 1000, signal })
  if (progress === undefined) return waiting
  let lastLine = ''
  const sendProgress = async () => {
    const job = await deputy.get(id)
    const line = [
      job.status,
      job.progress,
      job.duration_seconds === null ? null : `${job.duration_seconds} s`,
    ]
      .filter(part => part !== null)
      .join(', ')
    if (line !== lastLine) progress(line)
    lastLine = line
  }
  // Ignore errors here: `waiting` fails with the same error.
  const report = () => void sendProgress().catch(() => {})
  const stopListening = deputy.onChange(change => {
    if (change.jobId === id && change.kind === 'state') report()
  })
  const timer = setInterval(report, REPORT_EVERY_MS)
  try {
    report()
    return await waiting
  } finally {
    clearInterval(timer)
    stopListening()
  }
}
