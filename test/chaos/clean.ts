import { spawn } from 'node:child_process'
import type { Client } from '../../src/client/daemon-client.ts'
import { leftCgroups, leftFiles, leftProcesses, leftShims, mounts } from './leftovers.ts'
import { patiently, untilNone } from './patience.ts'
import { daemons, signal } from './processes.ts'
import type { OpenProvider } from './providers/provider.ts'
import { CLI, type World } from './world.ts'

interface Cleaning {
  readonly world: World
  readonly client: Client
  readonly open: ReadonlyMap<string, OpenProvider>
}

const CLEAN_MS = 90_000
const STOP_MS = 30_000

/** With a daemon at work: machines go by themselves, files with the jobs that own them. */
export const checkClean = async ({ world, client, open }: Cleaning): Promise<void> => {
  const nothingLeft = async (find: () => Promise<readonly string[]> | readonly string[]): Promise<void> => {
    for (const one of await untilNone(find, CLEAN_MS)) world.journal.violation(`left: ${one}`)
  }
  await nothingLeft(async () => {
    const machines = await patiently(() => client.machines(), AbortSignal.timeout(CLEAN_MS))
    return machines.map(machine => `machine ${JSON.stringify(machine)}`)
  })
  for (const provider of open.values()) await nothingLeft(provider.leftovers)
  for (;;) {
    const { jobs } = await client.list({ limit: 100 })
    if (jobs.length === 0) break
    for (const { job_id } of jobs) await client.delete(job_id)
  }
  // A daemon that was killed after it deleted a job leaves the job's files to the next start.
  for (const { pid } of daemons()) signal(pid, 'SIGTERM')
  await nothingLeft(() => leftFiles(world.home))
}

/** Without a daemon: nothing of the product runs or is mounted. */
export const checkStopped = async (options: {
  world: World
  open: ReadonlyMap<string, OpenProvider>
  before: readonly string[]
}): Promise<void> => {
  const { world, open, before } = options
  const { stderr, status } = await stopDaemon(world)
  if (status !== 0) world.journal.violation(`daemon stop ended with ${status}: ${stderr}`)
  const left = await untilNone(
    () => [
      ...leftProcesses([world.ledger.pid, ...[...open.values()].flatMap(one => one.pids())]),
      ...leftShims(world.home),
      ...leftCgroups(world.home),
      ...mounts()
        .filter(line => !before.includes(line) && ![...open.values()].some(one => one.ownsMount?.(line)))
        .map(line => `mount ${line}`),
    ],
    STOP_MS,
  )
  for (const one of left) world.journal.violation(`left after the daemon was stopped: ${one}`)
}

const stopDaemon = (world: World): Promise<{ status: number | null; stderr: string }> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [CLI, 'daemon', 'stop'], {
      env: world.env,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let stderr = ''
    child.stderr.on('data', chunk => {
      stderr += chunk
    })
    child.once('error', reject)
    child.once('close', status => resolve({ status, stderr }))
  })
