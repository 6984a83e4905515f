import type { GuestLinks } from './guest-links.ts'
import { runInGuest } from './run-in-guest.ts'

const ANSWER_MS = 10_000

/** Whether the kernel of a VM ended processes of the job for lack of memory. Unknown counts as no. */
export const wasOutOfMemory = async (links: GuestLinks, machineId: string): Promise<boolean> => {
  let said = ''
  const { signal } = new AbortController()
  try {
    await runInGuest(await links.to(machineId, signal), {
      argv: ['/bin/cat', '/sys/fs/cgroup/job/memory.events'],
      input: '',
      onStdout: chunk => {
        said += chunk.toString('utf8')
        return undefined
      },
      signal,
      timeoutMs: ANSWER_MS,
    })
  } catch {
    return false
  }
  return /^oom_kill [1-9]/m.test(said)
}
