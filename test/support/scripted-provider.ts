import { AppError } from '../../src/jobs/errors.ts'
import type { Manifest } from '../../src/jobs/manifest.ts'
import type { AttachRequest, Exit, Fit, FoundMachine, Outcome, Provider, Run } from '../../src/ports.ts'

/** Stands for machines that live on other computers: a test decides when each step happens and how it ends. */
export interface ScriptedProvider extends Provider {
  readonly calls: string[]
  readonly existing: Map<string, FoundMachine>
  /** Runs that were started and are not over. */
  readonly runs: Map<string, ScriptedRun>
  started(jobId: string): Promise<ScriptedRun>
  failNext(step: 'provision' | 'start' | 'destroy', error: AppError): void
  fit: Fit
  onAttach: (request: AttachRequest) => Promise<Outcome>
  attachTo(runs: ReadonlyMap<string, ScriptedRun>): void
}

interface ScriptedRun {
  readonly request: Run | AttachRequest
  print(text: string): Promise<void>
  finish(exit?: Partial<Exit>): void
  end(outcome: Outcome): void
}

export const exitWith = (exit: Partial<Exit> = {}): Exit => ({
  code: 0,
  signal: null,
  stopped: null,
  startedAt: 1000,
  endedAt: 2000,
  artifacts: [],
  skippedArtifacts: [],
  patch: null,
  usage: null,
  isolation: ['scripted'],
  limitsHit: [],
  agentError: null,
  phases: {},
  ...exit,
})

export const createScriptedProvider = (
  name: string,
  options: { limit?: number; poolSize?: number; poolAgeSeconds?: number; auto?: boolean } = {},
): ScriptedProvider => {
  const calls: string[] = []
  const existing = new Map<string, FoundMachine>()
  const runs = new Map<string, ScriptedRun>()
  const waiting = new Map<string, ((run: ScriptedRun) => void)[]>()
  const failures = new Map<string, AppError>()
  const trip = (step: string): void => {
    const failure = failures.get(step)
    failures.delete(step)
    if (failure) throw failure
  }

  const begin = (request: Run | AttachRequest): Promise<Outcome> =>
    new Promise(resolve => {
      let printed = request.job.outputBytes
      let position = request.sink.position
      const end = (outcome: Outcome): void => {
        runs.delete(request.job.id)
        resolve(outcome)
      }
      const run: ScriptedRun = {
        request,
        print: async text => {
          const data = Buffer.from(text)
          position += 1
          const chunk = { stream: 'stdout' as const, offset: printed, data, at: 1 }
          printed += data.length
          await request.sink.write({ position, chunks: [chunk], outputBytes: printed })
        },
        finish: exit => end({ kind: 'exit', exit: exitWith(exit) }),
        end,
      }
      if (request.detach.aborted) return end({ kind: 'detached' })
      const onStop = (): void =>
        run.finish({ code: null, signal: 'SIGKILL', stopped: request.stop.reason.kind })
      if (request.stop.aborted) return onStop()
      request.stop.addEventListener('abort', onStop)
      request.detach.addEventListener('abort', () => end({ kind: 'detached' }))
      runs.set(request.job.id, run)
      for (const tell of waiting.get(request.job.id) ?? []) tell(run)
      if (options.auto) run.finish()
    })

  const provider: ScriptedProvider = {
    name,
    slots: options.limit ?? 2,
    ...(options.poolSize !== undefined && {
      pool: {
        size: options.poolSize,
        kinds: [''],
        kindFor: () => '',
        ...(options.poolAgeSeconds !== undefined && { ageSeconds: options.poolAgeSeconds }),
      },
    }),
    calls,
    existing,
    runs,
    fit: { ok: true },
    onAttach: async request => ({
      kind: 'lost',
      error: new AppError('unavailable', `nothing holds ${request.job.id}`),
    }),
    attachTo: () => {
      provider.onAttach = begin
    },
    started: jobId =>
      new Promise(resolve => {
        const run = runs.get(jobId)
        if (run) resolve(run)
        else waiting.set(jobId, [...(waiting.get(jobId) ?? []), resolve])
      }),
    failNext: (step, error) => failures.set(step, error),
    check: async () => ({ runtime: name, ready: true, checks: [] }),
    fits: (_: Manifest) => provider.fit,
    create: async ({ machine, remember, manifest }) => {
      calls.push(`provision ${manifest === undefined ? 'for the pool' : 'for a job'}`)
      trip('provision')
      await remember({ vmid: 100 + existing.size })
      existing.set(machine.id, { id: machine.id, details: {} })
    },
    start: async run => {
      calls.push('start')
      trip('start')
      await run.sink.started(1000)
      return begin(run)
    },
    attach: request => {
      calls.push('attach')
      return provider.onAttach(request)
    },
    destroy: async machine => {
      calls.push('destroy')
      trip('destroy')
      existing.delete(machine.id)
    },
    list: async () => [...existing.values()],
    close: async () => {},
  }
  return provider
}
