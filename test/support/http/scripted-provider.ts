import type { Artifact } from '../../../src/jobs/job.ts'
import type { Exit, Outcome, Provider, Run } from '../../../src/ports.ts'

/** A runtime whose commands are played by the test: it prints what it is told and ends when it is told. */
export interface ScriptedProvider extends Provider {
  /** Resolves when the job's command has started. */
  started(jobId: string): Promise<Playing>
}

interface Playing {
  print(text: string | Uint8Array, stream?: 'stdout' | 'stderr'): Promise<void>
  progress(text: string): Promise<void>
  exit(code: number, artifacts?: readonly Artifact[]): void
}

export const createScriptedProvider = (
  options: { limit?: number; ready?: boolean } = {},
): ScriptedProvider => {
  const playing = new Map<string, Playing>()
  const waiting = new Map<string, ((playing: Playing) => void)[]>()

  const play = async (run: Run): Promise<Outcome> => {
    const { sink, job, stop, detach } = run
    const startedAt = Date.now()
    let offset = 0
    await sink.started(startedAt)
    return new Promise(resolve => {
      const end = (code: number | null, stopped: Exit['stopped'], artifacts: readonly Artifact[] = []) =>
        resolve({
          kind: 'exit',
          exit: {
            code,
            signal: code === null ? 'SIGKILL' : null,
            stopped,
            startedAt,
            endedAt: Date.now(),
            artifacts,
            skippedArtifacts: [],
            patch: artifacts.find(artifact => artifact.path.endsWith('.patch')) ?? null,
            usage: null,
            isolation: ['none'],
            limitsHit: [],
            agentError: null,
            phases: {},
          },
        })
      stop.addEventListener('abort', () => end(null, stop.reason.kind))
      detach.addEventListener('abort', () => resolve({ kind: 'detached' }))
      const actor: Playing = {
        print: (text, stream = 'stdout') => {
          const data = typeof text === 'string' ? Buffer.from(text) : text
          const chunk = { stream, offset, data, at: Date.now() }
          offset += data.length
          return sink.write({ position: offset, chunks: [chunk], outputBytes: offset })
        },
        progress: text => sink.write({ position: offset, chunks: [], outputBytes: offset, progress: text }),
        exit: (code, artifacts) => end(code, null, artifacts),
      }
      playing.set(job.id, actor)
      for (const tell of waiting.get(job.id) ?? []) tell(actor)
      waiting.delete(job.id)
    })
  }

  return {
    name: 'sandbox',
    slots: options.limit ?? 500,
    check: async () => ({
      runtime: 'sandbox',
      ready: options.ready ?? true,
      checks: [{ name: 'script', status: 'ok', message: 'the test plays the machine' }],
    }),
    fits: () => ({ ok: true }),
    create: async () => {},
    start: play,
    attach: play,
    destroy: async () => {},
    list: async () => [],
    close: async () => {},
    started: jobId =>
      new Promise(resolve => {
        const actor = playing.get(jobId)
        if (actor !== undefined) resolve(actor)
        else waiting.set(jobId, [...(waiting.get(jobId) ?? []), resolve])
      }),
  }
}
