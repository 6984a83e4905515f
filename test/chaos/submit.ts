import { spawn } from 'node:child_process'
import type { Client } from '../../src/client/daemon-client.ts'
import { patiently } from './patience.ts'
import type { Plan } from './plan.ts'
import type { Random } from './random.ts'
import { CLI, type World } from './world.ts'

/**
 * Hands over a job over the socket, or with a command that may be killed or have to start the daemon. Whatever became
 * of the command, the same submit is repeated over the socket, as a careful client does: the key gives the same job.
 */
export const submitJob = async (options: {
  readonly world: World
  readonly client: Client
  readonly plan: Plan
  readonly random: Random
  readonly signal: AbortSignal
}): Promise<string> => {
  const { world, client, plan, random, signal } = options
  // `run` returns with the end of its job, so nobody would know the id of one that waits to be cancelled.
  const way = random.weighted(plan.cancelMs === undefined ? WAYS : WAYS.filter(one => one.command !== 'run'))
  const printed = way.command === undefined ? undefined : await runCommand(world, way.command, plan)
  const { job_id } = await patiently(() => client.submit(plan.manifest), signal)
  if (printed !== undefined && printed !== job_id)
    world.journal.violation(`${plan.key}: acknowledged as ${printed}, then known as ${job_id}`)
  return job_id
}

const WAYS: readonly { readonly command?: 'run' | 'submit'; readonly weight: number }[] = [
  { weight: 7 },
  { command: 'submit', weight: 2 },
  { command: 'run', weight: 1 },
]

/** The id that `submit` printed. `run` stays to the end of the job, and must tell its output and status. */
const runCommand = (world: World, command: 'run' | 'submit', plan: Plan): Promise<string | undefined> =>
  new Promise(resolve => {
    const from = performance.now()
    const args = command === 'run' ? ['run', '--quiet', '--manifest', '-'] : ['submit', '--manifest', '-']
    const child = spawn(process.execPath, [CLI, ...args], { cwd: world.directory, env: world.env })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', chunk => (stdout += chunk))
    child.stderr.on('data', chunk => (stderr += chunk))
    child.stdin.on('error', () => {})
    child.stdin.end(JSON.stringify(plan.manifest))
    child.once('error', error => world.journal.violation(`${plan.key}: no command: ${error.message}`))
    child.once('close', (code, killed) => {
      world.journal.note(`client ${command} ${plan.key} ended with ${killed ?? code}`)
      const to = performance.now()
      const excused =
        killed !== null ||
        world.damage.during(plan.provider, from, to) ||
        world.damage.during('disk', from, to)
      if (command === 'submit') {
        if (code !== 0 && !excused)
          world.journal.violation(`${plan.key}: submit ended with ${code}: ${stderr}`)
        return resolve(code === 0 ? stdout.trim() : undefined)
      }
      const complete = plan.exitCode === null || (code === plan.exitCode && stdout === plan.stdout)
      if (!complete && !excused)
        world.journal.violation(
          `${plan.key}: run ended with ${code} and ${stdout.length} of ${plan.stdout.length} bytes: ${stderr}`,
        )
      resolve(undefined)
    })
  })
