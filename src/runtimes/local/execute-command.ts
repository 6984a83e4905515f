import type { DiskUse } from './disk-use.ts'
import type { Output } from './job-output.ts'
import type { Box } from './local-machine.ts'
import { jobText } from './runner-script.ts'
import type { StartSpec } from './shim-protocol.ts'

/** How a command ended. */
export interface End {
  /** As the shell tells it: 128 + n for a signal. Null when the machine ended with the job in it. */
  readonly code: number | null
  readonly alive: boolean
  /** What it had written when it failed; null when it did not, or when that is not known. */
  readonly disk: DiskUse | null
}

/** Sends the command and waits for its end, or for the end of the machine. */
export const execute = (box: Box, spec: StartSpec, output: Output): Promise<End> =>
  new Promise(resolve => {
    let code: number | null = null
    let disk: DiskUse | null = null
    const settle = (end: End) => {
      off()
      resolve(end)
    }
    const off = box.onStatus(line => {
      if (line.startsWith('exit ')) {
        code = Number(line.slice(5))
        if (code !== 0) disk = box.diskUse()
      } else if (line === 'settled') {
        // Everything printed before this line is in the pipes already; one turn of the loop reads it.
        if (spec.lifecycle === 'persistent')
          setImmediate(() => setImmediate(() => settle({ code, alive: true, disk })))
        else settle({ code, alive: true, disk })
      }
    })
    void box.gone.then(() => settle({ code, alive: false, disk }))
    listen(box, output)
    box.send(
      jobText({
        argv: spec.argv,
        env: { ...box.plan.jobEnv, ...spec.env, DEPUTY_WORKSPACE: box.plan.directory, ...spec.secrets },
        directory: box.plan.directory,
        limits: {
          files: 65_536,
          ...(box.plan.cgroup?.keeps.memory || !box.plan.ownPids
            ? {}
            : { dataBytes: 2 * spec.limits.memory }),
          ...(box.plan.cgroup?.keeps.processes || !box.plan.ownPids
            ? {}
            : { processes: spec.limits.processes }),
        },
        killLeftovers: spec.lifecycle === 'ephemeral' && box.plan.ownPids,
      }),
    )
  })

const listen = (box: Box, output: Output): void => {
  for (const name of ['stdout', 'stderr'] as const) {
    box[name].removeAllListeners('data')
    box[name].on('data', chunk => output[name](chunk))
    box[name].resume()
  }
}

export const exitOf = (end: End): { code: number | null; signal: string | null } => {
  if (end.code === null) return { code: null, signal: 'SIGKILL' }
  return { code: end.code, signal: end.code > 128 ? (SIGNALS[end.code - 128] ?? null) : null }
}

/** A shell tells a signal as 128 + n. Only those a job plausibly dies of are named. */
const SIGNALS: Readonly<Record<number, string>> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  4: 'SIGILL',
  6: 'SIGABRT',
  7: 'SIGBUS',
  8: 'SIGFPE',
  9: 'SIGKILL',
  11: 'SIGSEGV',
  13: 'SIGPIPE',
  14: 'SIGALRM',
  15: 'SIGTERM',
  24: 'SIGXCPU',
  25: 'SIGXFSZ',
  31: 'SIGSYS',
}

const LEAVE_MS = 2000

/** Lets the machine end by itself, and waits until nothing more can be printed. */
export const quiet = async (box: Box): Promise<void> => {
  box.leave()
  const timer = setTimeout(() => box.kill(), LEAVE_MS)
  // On the host a stranger may hold the pipe for ever.
  const late = new Promise<void>(resolve => setTimeout(resolve, 2 * LEAVE_MS).unref())
  await Promise.race([late, Promise.all([closed(box.stdout), closed(box.stderr)])])
  clearTimeout(timer)
  for (const stream of [box.stdout, box.stderr]) stream.destroy()
}

const closed = (stream: Box['stdout']): Promise<void> =>
  new Promise(resolve => {
    if (stream.destroyed || stream.readableEnded) return resolve()
    stream.once('end', resolve)
    stream.once('close', resolve)
  })
