import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { newId } from '../../../src/jobs/ids.ts'
import { parseManifest } from '../../../src/jobs/manifest.ts'
import { createBlobs } from '../../../src/store/blob-store.ts'
import { openStore } from '../../../src/store/sqlite-store.ts'
import { removeDirectory, startEngine, until } from '../../support/engine.ts'
import { createScriptedProvider } from '../../support/scripted-provider.ts'

const never = new AbortController().signal

async function* bytes(text: string) {
  yield Buffer.from(text)
}

it('deletes the oldest finished jobs with their artifacts, and never an unfinished one', async () => {
  const provider = createScriptedProvider('sandbox')
  const engine = await startEngine([provider])
  const blobs = createBlobs(join(engine.directory, 'blobs'), engine.store)
  const ids: string[] = []
  const kept: string[] = []
  for (const content of ['one', 'two', 'three']) {
    const { job_id } = await engine.deputy.submit({ task: content }, 'test')
    const blob = await blobs.put(bytes(content), 100, job_id)
    ;(await provider.started(job_id)).finish({ artifacts: [{ path: 'out.txt', ...blob }] })
    await engine.deputy.wait(job_id, { timeoutMs: 10_000, signal: never })
    ids.push(job_id)
    kept.push(blobs.path(blob.sha256))
  }
  const waiting = await engine.deputy.submit({ task: 'not finished' }, 'test')
  await provider.started(waiting.job_id)
  await until(async () => (await engine.deputy.machines()).length === 1, 'the finished machines are gone')
  expect(kept.map(path => existsSync(path))).toEqual([true, true, true])
  await engine.close()

  const next = createScriptedProvider('sandbox')
  next.attachTo(next.runs)
  const successor = await startEngine([next], {
    directory: engine.directory,
    config: config => {
      config.keep.jobs = 1
    },
  })
  await until(async () => (await successor.deputy.list({})).jobs.length === 2, 'two jobs are forgotten')
  const left = (await successor.deputy.list({})).jobs.map(job => job.job_id)
  expect(left).toEqual([waiting.job_id, ids[2]])
  await until(() => !existsSync(kept[1]!), 'their artifacts are gone')
  expect(kept.map(path => existsSync(path))).toEqual([false, false, true])
  await expect(successor.deputy.get(ids[0]!)).rejects.toMatchObject({ code: 'not_found' })
  await successor.close()
  removeDirectory(engine.directory)
})

it('deletes all expired jobs in one sweep', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'deputy-retention-'))
  const store = openStore(join(directory, 'deputy.db'))
  const ids = Array.from({ length: 1200 }, () => newId())
  await Promise.all(
    ids.map(id =>
      store.insertJob({
        id,
        manifest: parseManifest({ task: 'true' }),
        manifestHash: id,
        title: 'true',
        runtime: 'sandbox',
        origin: 'test',
        createdAt: 1,
        timeoutSeconds: 60,
      }),
    ),
  )
  await Promise.all(
    ids.map(id => store.move(id, 'cancelled', { completedAt: Date.now() }, { at: 1, data: {} })),
  )
  await store.close()
  const engine = await startEngine([createScriptedProvider('sandbox')], {
    directory,
    config: config => {
      config.keep.jobs = 10
    },
  })
  await until(async () => (await engine.store.counts()).cancelled === 10, 'all but ten are forgotten')
  await engine.close()
  removeDirectory(directory)
})

it('removes at once what no job and no upload uses, such as files of a job whose deletion was cut short', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'deputy-retention-'))
  const earlier = await startEngine([createScriptedProvider('sandbox')], { directory })
  const upload = await earlier.deputy.putBlob(bytes('an upload'))
  const blobs = createBlobs(join(directory, 'blobs'), earlier.store)
  const orphan = blobs.path('0'.repeat(64))
  await earlier.close()
  mkdirSync(dirname(orphan), { recursive: true })
  writeFileSync(orphan, 'of a deleted job')
  const engine = await startEngine([createScriptedProvider('sandbox')], { directory })
  await until(() => !existsSync(orphan), 'it is gone')
  expect(existsSync(blobs.path(upload.sha256))).toBe(true)
  await engine.close()
  removeDirectory(directory)
})

it('removes incomplete uploads of an earlier daemon', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'deputy-retention-'))
  const unfinished = join(directory, 'blobs', 'incoming', 'half')
  mkdirSync(dirname(unfinished), { recursive: true })
  writeFileSync(unfinished, 'half an upload')
  const engine = await startEngine([createScriptedProvider('sandbox')], { directory })
  expect(existsSync(unfinished)).toBe(false)
  const { sha256 } = await engine.deputy.putBlob(bytes('a whole upload'))
  expect(existsSync(createBlobs(join(directory, 'blobs'), engine.store).path(sha256))).toBe(true)
  await engine.close()
  removeDirectory(directory)
})
