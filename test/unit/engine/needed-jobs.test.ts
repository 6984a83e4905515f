import { buffer } from 'node:stream/consumers'
import { extract, pack } from 'tar-stream'
import { describe, expect, it } from 'vitest'
import type { Config } from '../../../src/config/schema.ts'
import { newId } from '../../../src/jobs/ids.ts'
import { createBlobs } from '../../../src/store/blob-store.ts'
import { begin } from '../../support/begin-engine.ts'
import type { TestEngine } from '../../support/engine.ts'
import { createScriptedProvider } from '../../support/scripted-provider.ts'

const never = new AbortController().signal
const DEADLINE_MS = 30_000

const start = async (limit = 4, config: (config: Config) => void = () => {}) => {
  const provider = createScriptedProvider('sandbox', { limit })
  const engine = await begin([provider], { config })
  const submit = async (manifest: object = {}): Promise<string> =>
    (await engine.deputy.submit({ task: 'x', ...manifest }, 'test')).job_id
  const end = (id: string) => engine.deputy.wait(id, { timeoutMs: DEADLINE_MS, signal: never })
  /** Ends a running job with these artifacts. */
  const succeed = async (id: string, files: Record<string, string> = {}): Promise<void> => {
    const run = await provider.started(id)
    const artifacts = await Promise.all(
      Object.entries(files).map(async ([path, text]) => ({
        path,
        ...(await engine.deputy.putBlob(once(text))),
      })),
    )
    run.finish({ artifacts })
    expect((await end(id)).status).toBe('success')
  }
  return { provider, engine, submit, end, succeed }
}

async function* once(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

const filesOf = async (engine: TestEngine, sha256: string): Promise<Record<string, string>> => {
  const blobs = createBlobs(`${engine.directory}/blobs`, engine.store)
  const tar = extract()
  tar.end(await buffer(blobs.read(sha256)))
  const files: Record<string, string> = {}
  for await (const entry of tar) files[entry.header.name] = (await buffer(entry)).toString()
  return files
}

describe('a job that needs others', () => {
  it('starts when all have succeeded, with their artifacts in its workspace', async () => {
    const { provider, engine, submit, succeed } = await start()
    const [first, second] = [await submit(), await submit()]
    const waiting = await engine.deputy.submit({ task: 'join', needs: [first, second] }, 'test')
    expect(waiting).toMatchObject({
      status: 'pending',
      queue_position: null,
      waits_for: [first, second].sort(),
    })
    await succeed(first, { 'out/a.txt': 'from the first' })
    expect(await engine.deputy.get(waiting.job_id)).toMatchObject({
      status: 'pending',
      progress: `waits for job ${second}`,
    })
    await succeed(second, { b: 'from the second' })
    const run = await provider.started(waiting.job_id)
    const blob = run.request.manifest.workspace?.blob
    expect(await filesOf(engine, blob!)).toEqual({
      [`needs/${first}/out/a.txt`]: 'from the first',
      [`needs/${second}/b`]: 'from the second',
    })
    expect(await engine.deputy.get(waiting.job_id)).not.toHaveProperty('waits_for')
    await succeed(waiting.job_id)
  })

  it('keeps its own workspace, in which the directory of the artifacts is theirs alone', async () => {
    const { provider, engine, submit, succeed } = await start()
    const tar = pack()
    tar.entry({ name: 'main.c' }, 'int main')
    tar.entry({ name: 'needs', type: 'symlink', linkname: '/etc' })
    tar.finalize()
    const { sha256 } = await engine.deputy.putBlob(tar as AsyncIterable<Uint8Array>)
    const first = await submit()
    const second = await submit({ needs: [first], workspace: { blob: sha256 } })
    await succeed(first, { a: '1' })
    const { request } = await provider.started(second)
    expect(await filesOf(engine, request.manifest.workspace!.blob!)).toEqual({
      'main.c': 'int main',
      [`needs/${first}/a`]: '1',
    })
  })

  it('starts at once when the others have succeeded before, and without artifacts gets no workspace', async () => {
    const { provider, submit, succeed } = await start()
    const first = await submit()
    await succeed(first)
    const run = await provider.started(await submit({ needs: [first] }))
    expect(run.request.manifest.workspace).toBeUndefined()
  })

  it('fails with a sentence that names the job which did not succeed, through a whole chain', async () => {
    const { provider, submit, end } = await start()
    const first = await submit()
    const second = await submit({ needs: [first] })
    const third = await submit({ needs: [second] })
    ;(await provider.started(first)).finish({ code: 3 })
    expect((await end(second)).error).toMatchObject({
      code: 'needs',
      message: `Job ${first}, which this job needs, has failed.`,
    })
    expect((await end(third)).error?.message).toBe(`Job ${second}, which this job needs, has failed.`)
    expect(provider.calls.filter(call => call === 'start')).toHaveLength(1)
  })

  it('fails when a needed job is cancelled before it starts, and does not wait for the others', async () => {
    const { engine, submit, end } = await start(1)
    const running = await submit()
    const queued = await submit()
    const waiting = await submit({ needs: [running, queued] })
    await engine.deputy.cancel(queued, 'test')
    expect((await end(waiting)).error?.message).toBe(`Job ${queued}, which this job needs, was cancelled.`)
    expect((await engine.deputy.get(running)).status).toBe('running')
  })

  it('can be cancelled while it waits, and then never starts', async () => {
    const { engine, provider, submit, succeed } = await start()
    const first = await submit()
    const waiting = await submit({ needs: [first] })
    expect((await engine.deputy.cancel(waiting, 'test')).status).toBe('cancelled')
    await succeed(first)
    await provider.started(await submit())
    expect(provider.runs.has(waiting)).toBe(false)
    expect(await engine.store.neededJobs()).toEqual([])
  })

  it('protects the jobs that it needs from deletion until it starts', async () => {
    const { engine, provider, submit, succeed } = await start()
    const [first, second] = [await submit(), await submit()]
    const waiting = await submit({ needs: [first, second] })
    await succeed(first, { a: '1' })
    await expect(engine.deputy.delete(first)).rejects.toMatchObject({
      code: 'conflict',
      message: `Job ${first} is needed by job ${waiting}, which has not started.`,
    })
    const all = { jobs: 0, bytes: 0, before: Number.MAX_SAFE_INTEGER }
    expect(await engine.store.expiredJobs(all)).toEqual([])
    await succeed(second)
    await provider.started(waiting)
    await engine.deputy.delete(first)
  })

  it('fails when a needed job is gone all the same', async () => {
    const { engine, submit, end, succeed } = await start()
    const [first, second] = [await submit(), await submit()]
    const waiting = await submit({ needs: [first, second] })
    await succeed(first)
    await engine.store.deleteJob(first)
    await succeed(second)
    expect((await end(waiting)).error?.message).toBe(`Job ${first}, which this job needs, was deleted.`)
  })

  it('fails when the artifacts exceed the limit of a workspace', async () => {
    const { submit, end, succeed } = await start(4, config => {
      config.limits.upload = '4K'
    })
    const first = await submit()
    const waiting = await submit({ needs: [first] })
    await succeed(first, { a: 'x'.repeat(2000), b: 'x'.repeat(2000) })
    expect((await end(waiting)).error?.message).toBe(
      'The workspace and the artifacts of the needed jobs exceed limits.upload (4K).',
    )
  })

  it('is refused when a needed job does not exist', async () => {
    const { submit } = await start()
    const missing = newId()
    await expect(submit({ needs: [missing] })).rejects.toMatchObject({
      code: 'not_found',
      message: `No job '${missing}', which 'needs' names.`,
    })
    await expect(submit({ needs: ['first'] })).rejects.toThrow(/'needs\.0'/)
  })

  it('has its queue timeout from the moment it could start', async () => {
    const { engine, submit, succeed } = await start(1)
    const first = await submit()
    const waiting = await submit({ needs: [first], queueTimeout: 50 })
    engine.clock.advance(60_000)
    expect(await engine.store.overdueJobs(engine.clock.now())).toEqual([])
    await succeed(first)
    await succeed(waiting)
  })

  it('waits on after a restart', async () => {
    const { engine, submit } = await start()
    const first = await submit()
    const waiting = await submit({ needs: [first] })
    await engine.close()
    const next = createScriptedProvider('sandbox')
    next.attachTo(next.runs)
    const successor = await begin([next], { directory: engine.directory })
    expect(await successor.deputy.get(waiting)).toMatchObject({ status: 'pending', waits_for: [first] })
    ;(await next.started(first)).finish()
    ;(await next.started(waiting)).finish()
    const done = await successor.deputy.wait(waiting, { timeoutMs: DEADLINE_MS, signal: never })
    expect(done.status).toBe('success')
  })
})
