import type { EngineClient } from './engine-client.ts'
import { execInContainer } from './exec-session.ts'

/** Of cgroup v2 and v1, as the container sees its own. */
const READ = 'cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2>/dev/null'
const ANSWER_MS = 5000

/** Whether the kernel ended processes of a container for lack of memory. Unknown counts as no. */
export const wasOutOfMemory = async (client: EngineClient, container: string): Promise<boolean> => {
  let said = ''
  const never = new AbortController()
  await execInContainer(client, {
    container,
    argv: ['sh', '-c', READ],
    input: '',
    onStdout: chunk => {
      said += chunk.toString('utf8')
      return undefined
    },
    signal: never.signal,
    timeoutMs: ANSWER_MS,
  }).catch(() => undefined)
  return /^oom_kill [1-9]/m.test(said)
}
