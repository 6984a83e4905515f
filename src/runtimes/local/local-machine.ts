import { spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import type { Duplex, Readable, Writable } from 'node:stream'
import type { Cgroup } from './cgroups.ts'
import { type DiskUse, openDisks } from './disk-use.ts'
import { createLineReader } from './line-reader.ts'
import type { OpenPipe } from './output-pipes.ts'
import { descendantsOf, findByInnerPid, innerPid, isAlive, signalAll } from './process-tree.ts'
import { RUNNER_PROLOGUE } from './runner-script.ts'

/** How a machine is brought up: made by the sandbox or the host runtime, executed here. */
export interface LaunchPlan {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** What the program reads from fd 6, 7, … */
  readonly fdContents: readonly Uint8Array[]
  /** Whether the fd after the feeds carries the JSON with the pid of the first process of the pid namespace. */
  readonly reportsInitPid: boolean
  readonly cgroup: Cgroup | null
  readonly isolation: readonly string[]
  /** Where the job finds its workspace. */
  readonly directory: string
  /** What the names in the tar of a manifest's files are relative to. */
  readonly filesRoot: string
  /** Whether the machine has a pid namespace of its own. */
  readonly hasPidNamespace: boolean
  /** A directory in each file system that jobs write to, where they have a size. */
  readonly diskPaths: readonly string[]
  /** A program to start beside the jobs; it reports `proxied` with its id when it is ready. */
  readonly helper?: readonly string[]
  /** Environment of every job in it. */
  readonly jobEnv: Readonly<Record<string, string>>
  /** Ends what the job left running, where the machine cannot do it from inside. */
  killLeftovers?(): Promise<void>
  /** Ends what is left of a machine that was killed before it was ready and so could not yet end by itself. */
  killAfterFailedBoot?(): Promise<void>
  /** Undoes what was set up for it outside, after it is gone. */
  cleanUp?(): Promise<void> | void
}

export interface LocalMachine {
  readonly plan: LaunchPlan
  readonly stdout: Readable
  readonly stderr: Readable
  readonly dataIn: Writable
  readonly dataOut: Readable
  /** Resolves when the runner reads commands; rejects with what was printed when it never will. */
  readonly ready: Promise<void>
  /** Resolves when nothing of it lives any more. */
  readonly gone: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  /** Returns how to stop listening. */
  onStatus(listener: (line: string) => void): () => void
  send(text: string): void
  /** Ends the conversation: the runner leaves, and everything in the machine with it. */
  shutDown(): void
  /** Inner ids of processes that belong to the machine, not to a job. */
  readonly machinePids: Set<number>
  /** Host ids of everything in it, its own processes included: a job can write into their memory. */
  processes(): number[]
  /** Host ids of everything the job started. */
  jobProcesses(): number[]
  /** Null where nothing is known of it. */
  diskUse(): DiskUse | null
  kill(): void
}

const STATUS_LINE_BYTES = 4096
const BOOT_TEXT_BYTES = 4096

export const bootMachine = (plan: LaunchPlan, openPipe: OpenPipe): LocalMachine => {
  const out = openPipe()
  const err = openPipe()
  const extra = plan.fdContents.length + (plan.reportsInitPid ? 1 : 0)
  const child = spawn(plan.argv[0]!, plan.argv.slice(1), {
    cwd: '/',
    env: plan.env,
    stdio: ['pipe', out.writeFd, err.writeFd, ...Array<'pipe'>(3 + extra).fill('pipe')],
  })
  closeSync(out.writeFd)
  closeSync(err.writeFd)
  const fds = child.stdio as readonly (Duplex | null)[]
  const control = fds[0]!
  const status = fds[3]!
  const dataIn = fds[4]!
  const dataOut = fds[5]!
  // A dying machine resets its sockets at any moment; what matters is told by `gone`.
  for (const fd of [...fds, out.reader, err.reader]) fd?.on('error', () => {})
  plan.fdContents.forEach((content, index) => {
    fds[6 + index]!.end(content)
  })

  let init: number | undefined
  let booted = false
  let bootText = ''
  const machinePids = new Set([1])
  let disks = openDisks(undefined, [])
  const listeners = new Set<(line: string) => void>()
  const { promise: ready, resolve: setReady, reject: setFailed } = withResolvers<void>()
  ready.catch(() => {})
  const collectBootText = (chunk: Buffer) => {
    if (!booted && bootText.length < BOOT_TEXT_BYTES) bootText += chunk.toString('utf8')
  }
  err.reader.on('data', collectBootText)
  status.on(
    'data',
    createLineReader(STATUS_LINE_BYTES, line => {
      if (!booted && line.startsWith('ready ')) {
        booted = true
        const runner = Number(line.slice(6))
        machinePids.add(runner)
        if (plan.diskPaths.length > 0 && child.pid !== undefined)
          disks = openDisks(findByInnerPid(child.pid, runner), plan.diskPaths)
        err.reader.off('data', collectBootText)
        err.reader.pause()
        setReady()
      } else for (const listener of listeners) listener(line)
    }),
  )
  if (plan.reportsInitPid) {
    let text = ''
    fds[6 + plan.fdContents.length]!.on('data', (chunk: Buffer) => {
      if (init === undefined && text.length < 1024) {
        text += chunk.toString('utf8')
        init = Number(/"child-pid":\s*(\d+)/.exec(text)?.[1]) || undefined
      }
    })
  }

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
    void cleanUpAfterExit().then(() => {
      // A stream that no job reads never notices its end and would keep its descriptor.
      if (!booted) err.reader.off('data', collectBootText)
      for (const { reader } of [out, err]) if (reader.listenerCount('data') === 0) reader.destroy()
      setFailed(new Error(bootText.trim() || `it ended with ${signal ?? code} before it was ready`))
      setGone({ code, signal })
    })
  })
  const cleanUpAfterExit = async () => {
    plan.cgroup?.kill()
    if (!booted) await plan.killAfterFailedBoot?.()
    for (let waited = 0; init !== undefined && isAlive(init) && waited < 5000; waited += 5)
      await new Promise(resolve => setTimeout(resolve, 5))
    await plan.killLeftovers?.()
    await plan.cgroup?.remove()
    await plan.cleanUp?.()
  }

  control.write(RUNNER_PROLOGUE)
  return {
    plan,
    stdout: out.reader,
    stderr: err.reader,
    dataIn,
    dataOut,
    ready,
    gone,
    onStatus: listener => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    send: text => void control.write(text),
    machinePids,
    shutDown: () => void control.end('exit 0\n'),
    processes: () => (child.pid === undefined ? [] : descendantsOf(child.pid)),
    jobProcesses: () => {
      if (child.pid === undefined) return []
      const all = descendantsOf(child.pid)
      // The launcher becomes the runner: everything below it is the job.
      if (!plan.hasPidNamespace) return all
      return all.filter(pid => pid !== init && !machinePids.has(innerPid(pid) ?? 1))
    },
    diskUse: () => disks.use(),
    kill: () => {
      const pid = child.pid
      if (pid === undefined || child.exitCode !== null || child.signalCode !== null) return
      // While it boots, its first process does not yet end with it: they are ended together.
      if (!booted) signalAll([pid], 'SIGSTOP')
      const inside = booted && init !== undefined ? [init] : descendantsOf(pid)
      signalAll([...inside, pid], 'SIGKILL')
      plan.cgroup?.kill()
    },
  }
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
