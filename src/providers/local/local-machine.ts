import { spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import type { Duplex, Readable, Writable } from 'node:stream'
import type { Cgroup } from './cgroups.ts'
import { type DiskUse, openDisks } from './disk-use.ts'
import { createLineReader } from './line-reader.ts'
import type { OpenPipe } from './output-pipes.ts'
import { descendantsOf, findByInnerPid, innerPid, isAlive, signalAll } from './process-tree.ts'
import { RUNNER_PROLOGUE, SESSIONS_PROLOGUE } from './runner-script.ts'

/** How to start a machine. The sandbox and host providers create it; `bootMachine` executes it. */
export interface LaunchPlan {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Contents that the program reads from `FIRST_CONTENT_FD` on. */
  readonly fdContents: readonly Uint8Array[]
  /** Whether the fd after `fdContents` reports the pid of the init process of the pid namespace, as JSON. */
  readonly reportsInitPid: boolean
  readonly cgroup: Cgroup | null
  readonly isolation: readonly string[]
  /** Workspace of the job, as the job sees it. */
  readonly directory: string
  /** Directory of the machine for the pipes of sessions. */
  readonly sessionDirectory: string
  /** Directory into which the tar of a manifest's files is unpacked. */
  readonly filesRoot: string
  /** Whether the machine has a pid namespace of its own. */
  readonly hasPidNamespace: boolean
  /** A directory in each writable file system that has a size limit. */
  readonly diskPaths: readonly string[]
  /** Program that runs beside the jobs. It reports `proxied PID` when it is ready. */
  readonly helper?: readonly string[]
  /** Environment of every job in the machine. */
  readonly jobEnv: Readonly<Record<string, string>>
  /** Kills processes that the job left running, when the runner cannot do it from inside. */
  killLeftovers?(): Promise<void>
  /** Kills the rest of a machine that was killed while booting, before its processes are tied to each other. */
  killAfterFailedBoot?(): Promise<void>
  /** Removes what was created for the machine outside it, after the machine has exited. */
  cleanUp?(): Promise<void> | void
}

export interface LocalMachine {
  readonly plan: LaunchPlan
  readonly stdout: Readable
  readonly stderr: Readable
  readonly dataIn: Writable
  readonly dataOut: Readable
  /** Resolves when the runner reads commands. Rejects with the boot output if it never does. */
  readonly ready: Promise<void>
  /** Resolves when no process of the machine is left. */
  readonly gone: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  /** Returns how to stop listening. */
  onStatus(listener: (line: string) => void): () => void
  send(text: string): void
  /** Sends a command to the shell that opens sessions, which also reads while a job runs. */
  sendToSessions(text: string): void
  /** The root directory of the machine as this process sees it; undefined when no session can be opened. */
  root(): string | undefined
  /** Makes the runner exit, which ends everything in the machine. */
  shutDown(): void
  /** Ids, inside the pid namespace, of processes that belong to the machine and not to a job. */
  readonly machinePids: Set<number>
  /** Host ids of all processes, including the machine's own: a job can write into their memory. */
  processes(): number[]
  /** Host ids of the processes that the job started. */
  jobProcesses(): number[]
  /** Null when it is unknown. */
  diskUse(): DiskUse | null
  kill(): void
}

/** After stdin, stdout, stderr, status, data in, data out and sessions. */
export const FIRST_CONTENT_FD = 7

const STATUS_LINE_BYTES = 4096
const BOOT_TEXT_BYTES = 4096

export const bootMachine = (plan: LaunchPlan, openPipe: OpenPipe): LocalMachine => {
  const { child, fds, out, err } = spawnLauncher(plan, openPipe)
  const control = fds[0]!
  const status = fds[3]!
  const dataIn = fds[4]!
  const dataOut = fds[5]!
  const initPid = plan.reportsInitPid
    ? readInitPid(fds[FIRST_CONTENT_FD + plan.fdContents.length]!)
    : () => undefined
  const sessions = fds[6]!
  let booted = false
  let runner: number | undefined
  let sessionsPid: number | undefined
  let bootText = ''
  const machinePids = new Set([1])
  let disks = openDisks(undefined, [])
  const listeners = new Set<(line: string) => void>()
  const { promise: ready, resolve: setReady, reject: setFailed } = withResolvers<void>()
  ready.catch(() => {})
  const collectBootText = (chunk: Buffer) => {
    if (!booted && bootText.length < BOOT_TEXT_BYTES) bootText += chunk.toString('utf8')
  }
  err.on('data', collectBootText)
  status.on(
    'data',
    createLineReader(STATUS_LINE_BYTES, line => {
      if (!booted && line.startsWith('ready ')) {
        booted = true
        runner = Number(line.slice(6))
        machinePids.add(runner)
        if (plan.diskPaths.length > 0 && child.pid !== undefined)
          disks = openDisks(findByInnerPid(child.pid, runner), plan.diskPaths)
        err.off('data', collectBootText)
        err.pause()
        setReady()
      } else if (sessionsPid === undefined && line.startsWith('sessions ')) {
        sessionsPid = Number(line.slice(9))
        machinePids.add(sessionsPid)
      } else for (const listener of listeners) listener(line)
    }),
  )
  const { promise: gone, resolve: setGone } = withResolvers<{
    code: number | null
    signal: NodeJS.Signals | null
  }>()
  child.once('error', error => {
    setFailed(error)
    setGone({ code: null, signal: null })
  })
  child.once('exit', (code, signal) => {
    disks.close()
    sessions.destroy()
    void cleanUpAfterExit().then(() => {
      // A stream without a reader never sees its end and would leak its descriptor.
      if (!booted) err.off('data', collectBootText)
      for (const reader of [out, err]) if (reader.listenerCount('data') === 0) reader.destroy()
      setFailed(new Error(bootText.trim() || `it ended with ${signal ?? code} before it was ready`))
      setGone({ code, signal })
    })
  })
  const cleanUpAfterExit = async () => {
    plan.cgroup?.kill()
    if (!booted) await plan.killAfterFailedBoot?.()
    const init = initPid()
    for (let waited = 0; init !== undefined && isAlive(init) && waited < 5000; waited += 5)
      await new Promise(resolve => setTimeout(resolve, 5))
    await plan.killLeftovers?.()
    await plan.cgroup?.remove()
    await plan.cleanUp?.()
  }

  control.write(RUNNER_PROLOGUE)
  sessions.write(SESSIONS_PROLOGUE)
  return {
    plan,
    stdout: out,
    stderr: err,
    dataIn,
    dataOut,
    ready,
    gone,
    onStatus: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    send: text => void control.write(text),
    sendToSessions: text => void sessions.write(text),
    root: () => {
      if (!plan.hasPidNamespace) return '/'
      const pid =
        runner === undefined || child.pid === undefined ? undefined : findByInnerPid(child.pid, runner)
      return pid === undefined ? undefined : `/proc/${pid}/root`
    },
    machinePids,
    shutDown: () => {
      sessions.end()
      control.end('exit 0\n')
    },
    processes: () => processesOf(plan, child.pid),
    jobProcesses: () => {
      const all = processesOf(plan, child.pid)
      // Without a pid namespace the launcher becomes the runner: all its descendants belong to the job.
      if (!plan.hasPidNamespace) return all
      return all.filter(pid => pid !== initPid() && !machinePids.has(innerPid(pid) ?? 1))
    },
    diskUse: () => disks.use(),
    kill: () => {
      const pid = child.pid
      if (pid === undefined || child.exitCode !== null || child.signalCode !== null) return
      // While the machine boots, its init process does not yet die with the launcher: kill both.
      if (!booted) signalAll([pid], 'SIGSTOP')
      const init = initPid()
      const inside = booted && init !== undefined ? [init] : descendantsOf(pid)
      signalAll([...inside, pid], 'SIGKILL')
      plan.cgroup?.kill()
    },
  }
}

/** All processes of the machine except its launcher. */
const processesOf = ({ cgroup, hasPidNamespace }: LaunchPlan, launcher: number | undefined): number[] => {
  if (launcher === undefined) return []
  // A sandbox cannot leave its cgroup. Its members are in one file; descendants need all processes of the computer.
  const members = hasPidNamespace ? (cgroup?.members() ?? []) : []
  return members.length > 0 ? members.filter(pid => pid !== launcher) : descendantsOf(launcher)
}

const spawnLauncher = (plan: LaunchPlan, openPipe: OpenPipe) => {
  const out = openPipe()
  const err = openPipe()
  const extra = plan.fdContents.length + (plan.reportsInitPid ? 1 : 0)
  const child = spawn(plan.argv[0]!, plan.argv.slice(1), {
    cwd: '/',
    env: plan.env,
    stdio: ['pipe', out.writeFd, err.writeFd, ...Array<'pipe'>(4 + extra).fill('pipe')],
  })
  closeSync(out.writeFd)
  closeSync(err.writeFd)
  const fds = child.stdio as readonly (Duplex | null)[]
  // A machine that exits resets its sockets at any moment; `gone` reports the exit.
  for (const fd of [...fds, out.reader, err.reader]) fd?.on('error', () => {})
  plan.fdContents.forEach((content, index) => {
    fds[FIRST_CONTENT_FD + index]!.end(content)
  })
  return { child, fds, out: out.reader, err: err.reader }
}

/** Returns the pid of the init process once the launcher has reported it. */
const readInitPid = (report: Readable): (() => number | undefined) => {
  let init: number | undefined
  let text = ''
  report.on('data', (chunk: Buffer) => {
    if (init === undefined && text.length < 1024) {
      text += chunk.toString('utf8')
      init = Number(/"child-pid":\s*(\d+)/.exec(text)?.[1]) || undefined
    }
  })
  return () => init
}

const withResolvers = <T>() => {
  let resolve!: (value: T) => void
  let reject!: (error: unknown) => void
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}
