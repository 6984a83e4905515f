import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import type { CheckDirectory } from '../../../src/jobs/allowed-directories.ts'
import { FOLLOWS_LABEL, WORKSPACE_LABEL } from '../../../src/jobs/labels.ts'
import { PREVIOUS_PATCH } from '../../../src/jobs/review.ts'
import { createBlobs } from '../../../src/store/blob-store.ts'
import { begin } from '../../support/begin-engine.ts'
import type { TestEngine } from '../../support/engine.ts'
import { createScriptedProvider } from '../../support/scripted-provider.ts'

const PATCH = `diff --git a/hello.txt b/hello.txt
--- a/hello.txt
+++ b/hello.txt
@@ -1 +1 @@
-hello
+hello, world
`

const AGENT = { agentType: 'custom', agent: { command: ['sh', '-c', 'true'] } }

/** A finished job that changed a file, and the directory its workspace came from. */
const changed = async (manifest: Readonly<Record<string, unknown>> = {}) => {
  const provider = createScriptedProvider('sandbox')
  const engine = await begin([provider])
  const source = join(engine.directory, 'source')
  mkdirSync(source)
  writeFileSync(join(source, 'hello.txt'), 'hello\n')
  const id = await finish(engine, provider, { labels: { [WORKSPACE_LABEL]: source, team: 'a' }, ...manifest })
  return { ...engine, provider, source, id }
}

const finish = async (
  { deputy, store, directory }: Pick<TestEngine, 'deputy' | 'store' | 'directory'>,
  provider: ReturnType<typeof createScriptedProvider>,
  manifest: Readonly<Record<string, unknown>>,
): Promise<string> => {
  const { job_id } = await deputy.submit({ task: 'greet the world', ...manifest }, 'test')
  const run = await provider.started(job_id)
  const blobs = createBlobs(join(directory, 'blobs'), store)
  run.finish({ patch: await blobs.put(Readable.from([Buffer.from(PATCH)]), PATCH.length, job_id) })
  await deputy.wait(job_id, { timeoutMs: 30_000, signal: new AbortController().signal })
  return job_id
}

describe('the review of a job', () => {
  it('begins without a decision, and remembers which files were viewed', async () => {
    const { deputy, id, source } = await changed()
    expect(await deputy.review(id)).toEqual({ job_id: id, directory: source, viewed: [], decision: null })
    await deputy.markViewed(id, 'a.txt', true)
    await deputy.markViewed(id, 'b.txt', true)
    await deputy.markViewed(id, 'a.txt', true)
    expect((await deputy.review(id)).viewed).toEqual(['b.txt', 'a.txt'])
    expect((await deputy.markViewed(id, 'b.txt', false)).viewed).toEqual(['a.txt'])
  })

  it('applies the changes to the directory that the workspace came from', async () => {
    const { deputy, store, id, source } = await changed()
    const { decision } = await deputy.applyChanges(id, 'console')
    expect(decision).toMatchObject({ verdict: 'applied', by: 'console', directory: source })
    expect(readFileSync(join(source, 'hello.txt'), 'utf8')).toBe('hello, world\n')
    const events = await store.events({ jobId: id, after: 0, limit: 100 })
    expect(events.at(-1)).toMatchObject({ type: 'review', data: { verdict: 'applied', by: 'console' } })
  })

  it('says how to apply the changes when that directory is not on this computer', async () => {
    const { deputy, id } = await changed({ labels: {} })
    expect((await deputy.review(id)).directory).toBeNull()
    await expect(deputy.applyChanges(id, 'console')).rejects.toMatchObject({
      code: 'not_found',
      hint: `Run in its directory: deputy patch --apply . ${id}`,
    })
  })

  it('is rejected with or without a comment, and keeps what was viewed', async () => {
    const { deputy, id } = await changed()
    await deputy.markViewed(id, 'hello.txt', true)
    expect((await deputy.rejectChanges(id, 'console')).decision).toMatchObject({
      verdict: 'rejected',
      comment: null,
    })
    expect(await deputy.rejectChanges(id, 'console', 'no tests')).toMatchObject({
      viewed: ['hello.txt'],
      decision: { verdict: 'rejected', comment: 'no tests', follow_up: null },
    })
  })

  it('is handed back to the agent, with its changes and the comment', async () => {
    const { deputy, store, id, source } = await changed({ ...AGENT, idempotency_key: 'once' })
    const { decision } = await deputy.handBack(id, 'console', 'add tests')
    expect(decision).toMatchObject({ verdict: 'handed_back', comment: 'add tests' })
    const next = await store.getManifest(decision?.follow_up ?? '')
    expect(next?.task).toMatch(/^greet the world\n.*add tests$/s)
    expect(next?.labels).toEqual({ [WORKSPACE_LABEL]: source, team: 'a', [FOLLOWS_LABEL]: id })
    expect(next?.files).toEqual([expect.objectContaining({ path: PREVIOUS_PATCH, text: PATCH })])
    expect(next?.idempotency_key).toBeUndefined()
  })

  it('gives the follow-up job one previous patch, not those of all attempts', async () => {
    const { provider, id, ...engine } = await changed(AGENT)
    const { decision } = await engine.deputy.handBack(id, 'console', 'once more')
    const second = decision?.follow_up ?? ''
    const run = await provider.started(second)
    run.finish({ patch: (await engine.store.getJob(id))?.result?.patch ?? null })
    await engine.deputy.wait(second, { timeoutMs: 30_000, signal: new AbortController().signal })
    const third = (await engine.deputy.handBack(second, 'console', 'and again')).decision?.follow_up
    const manifest = await engine.store.getManifest(third ?? '')
    expect(manifest?.files).toHaveLength(1)
    expect(manifest?.labels?.[FOLLOWS_LABEL]).toBe(second)
  })

  it('applies changes only where the client may have a workspace, whatever its labels say', async () => {
    const provider = createScriptedProvider('sandbox')
    const checkDirectory: CheckDirectory = async (path, allowed) => {
      if (allowed !== 'any' && !allowed.includes(path)) throw new Error('denied')
      return path
    }
    const engine = await begin([provider], { checkDirectory })
    const labels = { [WORKSPACE_LABEL]: '/home/u/.ssh', team: 'a' }
    const submitted = async (directories: readonly string[] | 'any') => {
      const { job_id } = await engine.deputy.submit({ task: 'x', labels }, 'mcp', { directories })
      return (await engine.store.getJob(job_id))?.labels
    }
    expect(await submitted([])).toEqual({ team: 'a' })
    expect(await submitted(['/home/u/project'])).toEqual({ team: 'a' })
    expect(await submitted(['/home/u/.ssh'])).toEqual(labels)
    expect(await submitted('any')).toEqual(labels)
  })

  it('cannot hand back a script, which reads no comment', async () => {
    const { deputy, id } = await changed()
    await expect(deputy.handBack(id, 'console', 'add tests')).rejects.toMatchObject({ code: 'unsupported' })
    expect((await deputy.review(id)).decision).toBeNull()
  })

  it('needs a finished job with changes', async () => {
    const provider = createScriptedProvider('sandbox')
    const { deputy } = await begin([provider])
    const { job_id } = await deputy.submit({ task: 'x' }, 'test')
    const run = await provider.started(job_id)
    await expect(deputy.review(job_id)).rejects.toMatchObject({ code: 'conflict' })
    run.finish()
    await deputy.wait(job_id, { timeoutMs: 30_000, signal: new AbortController().signal })
    await expect(deputy.review(job_id)).rejects.toMatchObject({ code: 'not_found' })
  })
})
