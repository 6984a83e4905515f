import type { JobView } from '../../../engine/deputy.ts'
import type { ToolContext } from '../../tool.ts'

/** Longer and a client with the usual limit of 60 s per call gives up first. */
export const MAX_WAIT_SECONDS = 50

const REPORT_EVERY_MS = 5000

/** Waits for the end of a job, and tells a client that wants to know how it goes on. */
export const waitForEnd = async (
  id: string,
  seconds: number,
  { deputy, signal, progress }: ToolContext,
): Promise<JobView> => {
  const waiting = deputy.wait(id, { timeoutMs: seconds * 1000, signal })
  if (progress === undefined) return waiting
  let told = ''
  const tell = async () => {
    const job = await deputy.get(id)
    const line = [
      job.status,
      job.progress,
      job.duration_seconds === null ? null : `${job.duration_seconds} s`,
    ]
      .filter(part => part !== null)
      .join(', ')
    if (line !== told) progress(line)
    told = line
  }
  // What goes wrong here goes wrong in the wait as well, and is told there.
  const report = () => void tell().catch(() => {})
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
