import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ListedFile, parseListing } from '../../src/files/file-listing.ts'
import { type GuestListener, startGuestListener } from '../../src/guest/listener.ts'
import type { JobHandler, MachineHandler } from '../../src/guest/machine-handler.ts'
import { encodeSpec, type GuestSpec } from '../../src/guest/order-format.ts'
import type { ExitReport } from '../../src/guest/protocol.ts'
import { RUNNER } from '../../src/guest/runner.ts'
import { type CallbackAddress, callbackText } from '../../src/guest/seed.ts'
import { hashToken } from '../../src/guest/token-hash.ts'
import { readTarFiles } from '../../src/runner/tar-files.ts'
import { removeDirectory } from './remove-directory.ts'

export const TOKEN = 'token-of-the-machine-0123456789'

/** One machine that runs one job, in memory; what a test needs of the daemon. */
export const createMemoryMachine = (spec: Partial<GuestSpec> & Pick<GuestSpec, 'argv'>) => {
  const full: GuestSpec = {
    jobId: '018f0000-0000-7000-8000-000000000001',
    env: {},
    secrets: {},
    timeoutSeconds: 60,
    graceSeconds: 1,
    heartbeatSeconds: 1,
    inputs: [],
    wantsFiles: false,
    continues: false,
    outlivesJob: false,
    ...spec,
  }
  const streams = { stdout: [] as Buffer[], stderr: [] as Buffer[] }
  const state = {
    order: 'run' as 'run' | 'stop',
    position: 0,
    duplicates: 0,
    startedCount: 0,
    workCount: 0,
    heartbeats: 0,
    alive: true,
    exit: undefined as ExitReport | undefined,
    listed: [] as ListedFile[],
    listComplete: false,
    /** What is asked for first, and what then. */
    wanted: [] as string[],
    wantedNext: [] as string[],
    uploads: 0,
    artifacts: new Map<string, Buffer>(),
    inputs: [] as Buffer[],
    frames: [] as { stream: string; size: number }[],
  }
  let ended: () => void = () => {}
  const exited = new Promise<void>(resolve => {
    ended = resolve
  })
  const job: JobHandler = {
    started: async () => {
      state.startedCount++
      return { next: state.position, order: state.order }
    },
    refused: async () => {},
    output: async ({ stream, offset, data }) => {
      const known = Math.min(data.length, Math.max(0, state.position - offset))
      if (known > 0) state.duplicates++
      streams[stream].push(Buffer.from(data.subarray(known)))
      state.frames.push({ stream, size: data.length - known })
      state.position += data.length - known
      return { next: state.position, order: state.order }
    },
    heartbeat: () => {
      state.heartbeats++
      return state.order
    },
    input: index =>
      state.inputs[index] === undefined
        ? undefined
        : (async function* () {
            yield state.inputs[index]!
          })(),
    files: async list => {
      const { files, truncated } = parseListing(list)
      state.listed = [...files]
      state.listComplete = !truncated
      return state.wanted.filter(path => !state.artifacts.has(path)).map(path => `./${path}`)
    },
    receive: async tar => {
      await readTarFiles(tar, 2 ** 30, async ({ path }, content) => {
        const chunks: Uint8Array[] = []
        for await (const chunk of content) chunks.push(chunk)
        state.artifacts.set(path, Buffer.concat(chunks))
      })
      state.uploads++
      return state.wantedNext.filter(path => !state.artifacts.has(path)).map(path => `./${path}`)
    },
    exit: async report => {
      state.exit = report
      ended()
      return 'poweroff'
    },
    status: async () => {},
    complete: async () => {},
  }
  const machine: MachineHandler = {
    work: async () => {
      state.workCount++
      if (state.startedCount > 0) return undefined
      return { jobId: full.jobId, order: encodeSpec(full), isAll: full.inputs.length === 0 }
    },
    job: id => (id === full.jobId && state.alive ? job : undefined),
  }
  return {
    spec: full,
    machine,
    state,
    exited,
    stdout: () => Buffer.concat(streams.stdout),
    stderr: () => Buffer.concat(streams.stderr),
  }
}

export type MemoryMachine = ReturnType<typeof createMemoryMachine>

export const serveMachine = (
  memory: MemoryMachine,
  more: Partial<Parameters<typeof startGuestListener>[0]> = {},
): Promise<GuestListener> =>
  startGuestListener({
    host: '127.0.0.1',
    port: 0,
    machine: hash => (hash === hashToken(TOKEN) && memory.state.alive ? memory.machine : undefined),
    ...more,
  })

export interface RunnerOptions {
  readonly shell?: string
  readonly env?: Readonly<Record<string, string>>
  /** A directory of programs instead of those of this computer. */
  readonly tools?: string
}

/** The runner as a process of its own, with a directory for its root and a `poweroff` that does nothing. */
export const startRunner = (
  callback: CallbackAddress,
  { shell = 'sh', env = {}, tools }: RunnerOptions = {},
) => {
  const root = mkdtempSync(join(tmpdir(), 'runner-'))
  mkdirSync(join(root, 'var/lib/deputy'), { recursive: true })
  mkdirSync(join(root, 'bin'))
  writeFileSync(join(root, 'var/lib/deputy/callback'), callbackText(callback))
  writeFileSync(join(root, 'runner'), RUNNER)
  writeFileSync(join(root, 'bin/poweroff'), '#!/bin/sh\ntrue\n')
  chmodSync(join(root, 'bin/poweroff'), 0o755)
  const log: string[] = []
  const child: ChildProcess = spawn(shell, [join(root, 'runner')], {
    env: {
      PATH: `${join(root, 'bin')}:${tools ?? process.env.PATH}`,
      DEPUTY_ROOT: root,
      DEPUTY_USER: '-',
      ...env,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  })
  child.stderr!.on('data', chunk => log.push(String(chunk)))
  const done = new Promise<number | null>(resolve => child.on('exit', resolve))
  return {
    root,
    child,
    done,
    log: () => log.join(''),
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        try {
          process.kill(-child.pid!, 'SIGKILL')
        } catch {
          // It ended by itself meanwhile.
        }
        await done
      }
      removeDirectory(root)
    },
  }
}
