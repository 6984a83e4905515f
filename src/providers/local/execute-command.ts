import type { JobOutput } from '../../output/job-output.ts'
import { LOCAL_SIGNALS, signalOf } from '../../runner/signals.ts'
import type { DiskUse } from './disk-use.ts'
import type { LocalMachine } from './local-machine.ts'
import type { RunSpec } from './run-spec.ts'
import { jobScript, processLimit } from './runner-script.ts'

/** How a command ended. */
export interface CommandEnd {
  /** Exit code of the shell: 128 + n for a signal. Null when the machine exited with the job. */
  readonly code: number | null
  readonly alive: boolean
  /** Disk usage when the command failed; null when it succeeded or the usage is unknown. */
  readonly disk: DiskUse | null
}

/** Sends the command and waits until it or the machine has ended. */
export const executeCommand = (
  machine: LocalMachine,
  spec: RunSpec,
  output: JobOutput,
): Promise<CommandEnd> =>
  new Promise(resolve => {
    let code: number | null = null
    let disk: DiskUse | null = null
    const settle = (end: CommandEnd) => {
      off()
      resolve(end)
    }
    const off = machine.onStatus(line => {
      if (line.startsWith('exit ')) {
        code = Number(line.slice(5))
        if (code !== 0) disk = machine.diskUse()
      } else if (line === 'settled') {
        // The output is already in the pipes; the next turns of the event loop read it.
        if (spec.lifecycle === 'persistent')
          setImmediate(() => setImmediate(() => settle({ code, alive: true, disk })))
        else settle({ code, alive: true, disk })
      }
    })
    void machine.gone.then(() => settle({ code, alive: false, disk }))
    forwardOutput(machine, output)
    const processes =
      machine.plan.cgroup?.enforces.processes || !machine.plan.hasPidNamespace
        ? undefined
        : spec.limits.processes
    machine.sendToSessions(`${processLimit(processes).join('\n')}\n`)
    machine.send(
      jobScript({
        argv: spec.argv,
        env: {
          ...machine.plan.jobEnv,
          ...spec.env,
          DEPUTY_WORKSPACE: machine.plan.directory,
          ...spec.secrets,
        },
        directory: machine.plan.directory,
        limits: {
          files: 65_536,
          ...(machine.plan.cgroup?.enforces.memory || !machine.plan.hasPidNamespace
            ? {}
            : { dataBytes: 2 * spec.limits.memory }),
          ...(processes === undefined ? {} : { processes }),
        },
        killLeftovers: spec.lifecycle === 'ephemeral' && machine.plan.hasPidNamespace,
      }),
    )
  })

const forwardOutput = (machine: LocalMachine, output: JobOutput): void => {
  for (const name of ['stdout', 'stderr'] as const) {
    machine[name].removeAllListeners('data')
    machine[name].on('data', chunk => output[name](chunk))
    machine[name].resume()
  }
}

export const exitStatus = (end: CommandEnd): { code: number | null; signal: string | null } => {
  if (end.code === null) return { code: null, signal: 'SIGKILL' }
  return signalOf(end.code, LOCAL_SIGNALS)
}

const SHUTDOWN_MS = 2000

/** Shuts the machine down and waits until its output is closed. */
export const shutDownAndDrain = async (machine: LocalMachine): Promise<void> => {
  machine.shutDown()
  const timer = setTimeout(() => machine.kill(), SHUTDOWN_MS)
  // On the host another process may keep the pipe open forever.
  const timedOut = new Promise<void>(resolve => setTimeout(resolve, 2 * SHUTDOWN_MS).unref())
  await Promise.race([timedOut, Promise.all([closed(machine.stdout), closed(machine.stderr)])])
  clearTimeout(timer)
  for (const stream of [machine.stdout, machine.stderr]) stream.destroy()
}

const closed = (stream: LocalMachine['stdout']): Promise<void> =>
  new Promise(resolve => {
    if (stream.destroyed || stream.readableEnded) return resolve()
    stream.once('end', resolve)
    stream.once('close', resolve)
  })
