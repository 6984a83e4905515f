import { spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newId } from '../../src/jobs/ids.ts'
import type { Job, OutputChunk } from '../../src/jobs/job.ts'
import { type Manifest, type ManifestInput, parseManifest } from '../../src/jobs/manifest.ts'
import type {
  Blobs,
  CommandSpec,
  Machine,
  Outcome,
  Provider,
  Run,
  Sink,
  SinkBatch,
  StopReason,
} from '../../src/ports.ts'
import { blobsWithoutStore } from './blobs.ts'
import { removeDirectory } from './remove-directory.ts'

/** Where a runtime comes from, as data: a test can make it here and in another process. */
export interface ProviderSubject {
  /** Below dist/. */
  readonly module: string
  readonly factory: string
  readonly options: Readonly<Record<string, unknown>>
  /** How long to wait for anything, for machines that are slow; 30 unless told. */
  readonly patienceSeconds?: number
}

/** For a runtime around parts of the test's own. */
export type ProviderMaker = (stateDir: string, blobs: Blobs) => Provider | Promise<Provider>

const DIST = new URL('../../dist/', import.meta.url)

interface RecordingSink extends Sink {
  readonly chunks: OutputChunk[]
  readonly batches: SinkBatch[]
  readonly progress: string[]
  readonly startedAt: number[]
  text(stream?: 'stdout' | 'stderr'): string
  /** What `until` tells when it waits in vain. */
  outcome: Outcome | undefined
  /** Resolves when the condition holds after some report. */
  until(condition: (sink: RecordingSink) => boolean, what: string): Promise<void>
}

const createSink = (position: number, remember: Run['remember'], patienceMs: number): RecordingSink => {
  const watchers = new Set<() => void>()
  const ring = () => {
    for (const watcher of [...watchers]) watcher()
  }
  const sink = {
    position,
    outcome: undefined as Outcome | undefined,
    chunks: [] as OutputChunk[],
    batches: [] as SinkBatch[],
    progress: [] as string[],
    startedAt: [] as number[],
    started: async (at: number) => {
      sink.startedAt.push(at)
      ring()
    },
    write: async (batch: SinkBatch) => {
      sink.batches.push(batch)
      sink.chunks.push(...batch.chunks)
      if (batch.progress !== undefined) sink.progress.push(batch.progress)
      sink.position = batch.position
      if (batch.remember) await remember(batch.remember)
      ring()
    },
    heartbeat: ring,
    text: (stream?: 'stdout' | 'stderr') =>
      Buffer.concat(
        sink.chunks.filter(chunk => stream === undefined || chunk.stream === stream).map(chunk => chunk.data),
      ).toString('utf8'),
    until: (condition: (sink: RecordingSink) => boolean, what: string) =>
      new Promise<void>((resolve, reject) => {
        const timer = setTimeout(() => {
          watchers.delete(look)
          reject(new Error(`not in time: ${what}; output so far: ${sink.text().slice(-500)}`))
        }, patienceMs)
        const look = () => {
          if (!condition(sink)) {
            if (sink.outcome !== undefined)
              reject(new Error(`it ended before ${what}: ${JSON.stringify(sink.outcome)}`))
            return
          }
          clearTimeout(timer)
          watchers.delete(look)
          resolve()
        }
        watchers.add(look)
        look()
      }),
  }
  return sink
}

export interface Launched {
  readonly job: Job
  readonly manifest: Manifest
  readonly machine: Machine
  readonly sink: RecordingSink
  readonly outcome: Promise<Outcome>
  stop(kind: StopReason['kind']): void
  detach(): void
}

export interface Harness {
  readonly stateDir: string
  readonly blobs: Blobs
  readonly provider: Provider
  /** The command is `bash -c task` unless told otherwise. */
  launch(
    input: ManifestInput,
    command?: Partial<CommandSpec>,
    machine?: Machine,
    job?: Partial<Job>,
  ): Promise<Launched>
  /** Launches, waits for the end, destroys the machine. */
  run(
    input: ManifestInput,
    command?: Partial<CommandSpec>,
  ): Promise<{ outcome: Outcome; sink: RecordingSink }>
  /** What a restarted daemon does. */
  reattach(launched: Pick<Launched, 'job' | 'manifest' | 'machine'>, position: number): Launched
  /** A second instance on the same state, as after a restart. The first is closed. */
  restart(): Promise<void>
  dispose(): Promise<void>
}

export const createHarness = async (subject: ProviderSubject | ProviderMaker): Promise<Harness> => {
  const stateDir = mkdtempSync(join(tmpdir(), 'deputy-runtime-'))
  const blobs = blobsWithoutStore(join(stateDir, 'blobs'))
  const make = (): Promise<Provider> | Provider =>
    typeof subject === 'function' ? subject(stateDir, blobs) : makeProvider(subject, stateDir, blobs)
  const patienceMs = patienceOf(subject)
  let provider = await make()
  const machines: Machine[] = []

  /** As the engine keeps it with the machine's record. */
  const rememberFor = (machine: Machine) => async (details: Record<string, unknown>) => {
    Object.assign(machine.details, details)
  }

  const begin = (
    parts: Pick<Launched, 'job' | 'manifest' | 'machine'>,
    position: number,
    go: (run: Omit<Run, 'command'>) => Promise<Outcome>,
  ): Launched => {
    const remember = rememberFor(parts.machine)
    const sink = createSink(position, remember, patienceMs)
    const stop = new AbortController()
    const detach = new AbortController()
    const outcome = go({ ...parts, sink, stop: stop.signal, detach: detach.signal, remember })
    void outcome.then(result => {
      sink.outcome = result
      sink.heartbeat()
    })
    return {
      ...parts,
      sink,
      outcome,
      stop: kind => stop.abort({ kind, by: 'a test' } satisfies StopReason),
      detach: () => detach.abort(),
    }
  }

  const harness: Harness = {
    stateDir,
    blobs,
    get provider() {
      return provider
    },
    launch: async (input, command, kept, job) => {
      const manifest = parseManifest(input)
      const id = newId()
      const machine = kept ?? { id: newId(), runtime: provider.name, jobId: id, details: {} }
      if (kept === undefined) {
        machines.push(machine)
        await provider.create({
          machine,
          manifest,
          remember: rememberFor(machine),
          signal: AbortSignal.timeout(patienceMs),
        })
      }
      return begin({ job: { ...jobRecord(id, manifest), ...job }, manifest, machine }, 0, run =>
        provider.start({ ...run, command: commandOf(manifest, patienceMs, command) }),
      )
    },
    run: async (input, command) => {
      const launched = await harness.launch(input, command)
      const outcome = await launched.outcome
      await provider.destroy(launched.machine, AbortSignal.timeout(patienceMs))
      return { outcome, sink: launched.sink }
    },
    reattach: (parts, position) =>
      begin(parts, position, async run => {
        const found = await provider.attach(run)
        if (found.kind === 'unfinished') throw new Error('the machine was never provisioned')
        return found
      }),
    restart: async () => {
      await provider.close()
      provider = await make()
    },
    dispose: async () => {
      for (const machine of machines) await provider.destroy(machine, AbortSignal.timeout(patienceMs))
      await provider.close()
      removeDirectory(stateDir)
    },
  }
  return harness
}

const patienceOf = (subject: ProviderSubject | ProviderMaker): number =>
  ((typeof subject === 'function' ? undefined : subject.patienceSeconds) ?? 30) * 1000

const makeProvider = async (subject: ProviderSubject, stateDir: string, blobs: Blobs): Promise<Provider> => {
  const module = (await import(new URL(subject.module, DIST).href)) as Record<
    string,
    (options: Record<string, unknown>) => Provider
  >
  return module[subject.factory]!({ ...subject.options, stateDir, blobs })
}

/** Where machines are slow, a command has longer than the test waits for any part of it. */
const commandOf = (
  manifest: Manifest,
  patienceMs: number,
  given: Partial<CommandSpec> = {},
): CommandSpec => ({
  argv: ['bash', '-c', manifest.task],
  env: manifest.env ?? {},
  secrets: {},
  format: 'text',
  network: manifest.network ?? 'none',
  timeoutSeconds: manifest.timeout ?? Math.max(60, patienceMs / 500),
  programs: [],
  ...given,
})

/** Starts a job in a process of its own, which can then be killed as a daemon is. */
export const launchElsewhere = async (
  harness: Harness,
  subject: ProviderSubject,
  input: ManifestInput,
): Promise<
  Pick<Launched, 'job' | 'manifest' | 'machine'> & { seen: string; position: number; kill(): Promise<void> }
> => {
  const manifest = parseManifest(input)
  const id = newId()
  const machine: Machine = { id: newId(), runtime: harness.provider.name, jobId: id, details: {} }
  const parts = { job: jobRecord(id, manifest), manifest, machine }
  const order = {
    ...parts,
    subject,
    stateDir: harness.stateDir,
    command: commandOf(manifest, patienceOf(subject)),
  }
  const child = spawn(
    process.execPath,
    ['--input-type=module', '-e', DAEMON, DIST.href, JSON.stringify(order)],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const seen = { text: '', position: 0 }
  await new Promise<void>((resolve, reject) => {
    let held = ''
    const timer = setTimeout(
      () => reject(new Error('the other daemon reported nothing in time')),
      patienceOf(subject),
    )
    child.once('exit', code => reject(new Error(`the other daemon ended with ${code}`)))
    child.stdout.on('data', (chunk: Buffer) => {
      held += chunk.toString()
      const lines = held.split('\n')
      held = lines.pop()!
      for (const line of lines) {
        const report = JSON.parse(line) as { text: string; position: number; details?: object }
        if (report.details) {
          Object.assign(machine.details, report.details)
          continue
        }
        seen.text += report.text
        seen.position = report.position
        clearTimeout(timer)
        resolve()
      }
    })
  })
  return {
    ...parts,
    get seen() {
      return seen.text
    },
    get position() {
      return seen.position
    },
    kill: async () => {
      if (child.exitCode !== null) throw new Error(`the other daemon ended by itself with ${child.exitCode}`)
      const gone = new Promise(resolve => child.once('close', resolve))
      child.kill('SIGKILL')
      await gone
    },
  }
}

/** Reports each batch on stdout, as a daemon would commit it. */
const DAEMON = `
const [dist, text] = process.argv.slice(1)
const order = JSON.parse(text)
const { createBlobs } = await import(dist + 'store/blob-store.js')
const module = await import(dist + order.subject.module)
const blobs = createBlobs(order.stateDir + '/blobs', { holdBlob: async () => {}, isBlobUsed: async () => true })
const provider = module[order.subject.factory]({ ...order.subject.options, stateDir: order.stateDir, blobs })
const never = new AbortController().signal
const sink = {
  position: 0,
  started: async () => {},
  heartbeat: () => {},
  write: async batch => {
    if (batch.remember) await remember(batch.remember)
    const text = Buffer.concat(batch.chunks.map(chunk => chunk.data)).toString()
    process.stdout.write(JSON.stringify({ text, position: batch.position }) + '\\n')
  },
}
const { job, manifest, machine, command } = order
const remember = async details => {
  Object.assign(machine.details, details)
  process.stdout.write(JSON.stringify({ details }) + '\\n')
}
await provider.create({ machine, manifest, remember, signal: never })
await provider.start({ job, manifest, machine, command, sink, stop: never, detach: never, remember })
`

const jobRecord = (id: string, manifest: Manifest): Job => ({
  id,
  state: 'provisioning',
  title: manifest.task.slice(0, 80),
  agentType: manifest.agentType,
  runtimeWanted: manifest.runtime,
  runtime: manifest.runtime,
  wantsMachine: manifest.machine ?? null,
  machineId: null,
  daemon: '',
  parentId: null,
  priority: 0,
  statusMode: 'simple',
  labels: {},
  origin: 'test',
  createdAt: 0,
  provisioningAt: 0,
  startedAt: null,
  completedAt: null,
  timeoutSeconds: manifest.timeout ?? 60,
  attempts: 1,
  cancelRequestedAt: null,
  heartbeatAt: null,
  progress: null,
  outputBytes: 0,
  outputBase: 0,
  position: 0,
  exitCode: null,
  signal: null,
  error: null,
  result: null,
  phases: {},
})
