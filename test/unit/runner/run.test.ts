import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { AttachRequest } from '../../../src/ports.ts'
import type { Answer } from '../../../src/runner/frames.ts'
import { keepLimits } from '../../../src/runner/keep-limits.ts'
import { driveRun, type RunOptions, runIdOf } from '../../../src/runner/run.ts'
import { createHarness, type ProviderMaker } from '../../support/providers.ts'

/** A machine whose runner answers a start with these frames, or a request to follow. */
const answering =
  (answers: (run: string) => readonly Answer[]): ProviderMaker =>
  (_, blobs) => {
    const options = (run: AttachRequest): Omit<RunOptions, 'context'> => ({
      run,
      blobs,
      keep: keepLimits(),
      graceSeconds: 1,
      begun: performance.now(),
      host: {
        name: 'a hostile machine',
        retries: 0,
        failed: () => {},
        connect: async () => ({
          succeeded: () => {},
          failed: () => {},
          exchange: async (_, { onAnswer }) => {
            for (const answer of answers(runIdOf(run))) onAnswer(answer, Buffer.alloc(0))
            return { cut: undefined, sent: true }
          },
        }),
      },
    })
    return {
      name: 'hostile',
      slots: 1,
      check: async () => ({ runtime: 'hostile', ready: true, checks: [] }),
      fits: () => ({ ok: true }),
      create: async () => {},
      destroy: async () => {},
      list: async () => [],
      close: async () => {},
      start: run =>
        driveRun({
          ...options(run),
          context: { secrets: [], format: 'text', isolation: [], timeoutSeconds: 60 },
          start: {
            ...{ kind: 'start', run: runIdOf(run), workspace: run.machine.id, timeoutSeconds: 60 },
            ...{ graceTenths: 10, keepHead: 1000, keepTail: 1000, context: '', env: [], argv: ['true'] },
          },
        }),
      attach: run =>
        driveRun({
          ...options(run),
          context: sealed => {
            throw new Error(`cannot be opened: '${sealed}'`)
          },
        }),
    }
  }

const exit = (run: string): Answer => ({ kind: 'exit', run, code: 5, how: 'exit', startedAt: 1, endedAt: 2 })

it('takes no result from a machine elsewhere: it could name files of this computer', async () => {
  const artifact = { path: 'a', sha256: 'a'.repeat(64), size: 6, file: '../secret' }
  const harness = await createHarness(
    answering(run => [
      { kind: 'started', run, fresh: true },
      {
        ...exit(run),
        result: {
          ...{ code: 0, signal: null, stopped: null, startedAt: 1, endedAt: 2, outputBytes: 0 },
          ...{ artifacts: [artifact], skippedArtifacts: [], patch: artifact, usage: null, isolation: [] },
          ...{ limitsHit: [], agentError: null, phases: {} },
        },
      },
    ]),
  )
  writeFileSync(join(harness.stateDir, 'secret'), 'secret')
  const { outcome } = await harness.run({ task: 'true' })
  expect(outcome).toMatchObject({ kind: 'exit', exit: { code: 5, artifacts: [], patch: null } })
  await harness.dispose()
})

it('reports a start once, although each session with the machine tells it again', async () => {
  const harness = await createHarness(
    answering(run => [
      { kind: 'started', run, fresh: true },
      { kind: 'progress', run, text: 'half' },
      { kind: 'started', run, fresh: false },
      exit(run),
    ]),
  )
  const { outcome, sink } = await harness.run({ task: 'true' })
  expect(outcome).toMatchObject({ kind: 'exit', exit: { code: 5 } })
  expect(sink.startedAt).toHaveLength(1)
  await harness.dispose()
})

it('follows a run whose context is lost, instead of losing the run as well', async () => {
  const harness = await createHarness(answering(run => [exit(run)]))
  const launched = await harness.launch({ task: 'true' })
  await launched.outcome
  const again = await harness.reattach(launched, 0).outcome
  expect(again).toMatchObject({ kind: 'exit', exit: { code: 5 } })
  await harness.dispose()
})
