import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { newId } from '../../src/jobs/ids.ts'
import type { OutputChunk } from '../../src/jobs/job.ts'
import { parseManifest } from '../../src/jobs/manifest.ts'
import type { Store } from '../../src/ports.ts'

const NOTHING = {
  artifacts: [],
  skippedArtifacts: [],
  patch: null,
  usage: null,
  isolation: [],
  limitsHit: [],
}

export const submit = async (store: Store, manifest: object = {}, createdAt = 1): Promise<string> => {
  const id = newId()
  await store.insertJob({
    id,
    manifest: parseManifest({ task: 'x', ...manifest }),
    manifestHash: 'h',
    title: 'x',
    runtime: 'sandbox',
    origin: 'test',
    createdAt,
    timeoutSeconds: 60,
  })
  return id
}

const finish = async (store: Store, id: string, at: number): Promise<void> => {
  await store.move(id, 'failed', { completedAt: at }, { at, data: {} })
}

/** What every store must do. `open` returns a store without jobs, which the caller closes. */
export const storeContract = (open: () => Promise<Store>): void => {
  describe('concurrent writes', () => {
    it('keeps acknowledged writes when one of many concurrent writes fails', async () => {
      const store = await open()
      const results = await Promise.allSettled([
        submit(store, { idempotency_key: 'a' }),
        store.insertJob({
          id: newId(),
          manifest: parseManifest({ task: 'other', idempotency_key: 'a' }),
          manifestHash: 'another',
          title: '',
          runtime: 'sandbox',
          origin: '',
          createdAt: 1,
          timeoutSeconds: 1,
        }),
        submit(store),
      ])
      expect(results.map(result => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect((await store.counts()).pending).toBe(2)
    })
  })

  describe('needed jobs', () => {
    const claim = (store: Store) => store.claim({ runtime: 'sandbox', machineId: newId(), now: 10 })
    const succeed = async (store: Store, id: string): Promise<void> => {
      await store.move(id, 'provisioning', {}, { at: 2, data: {} })
      await store.move(id, 'running', { startedAt: 2 }, { at: 2, data: {} })
      await store.move(id, 'success', { completedAt: 3 }, { at: 3, data: {} })
    }

    it('keep a job from being claimed until it is released, once', async () => {
      const store = await open()
      const [first, second] = [await submit(store), await submit(store)]
      const waiting = await submit(store, { needs: [first, second], priority: 9 })
      expect(await store.settledNeeds()).toEqual([])
      expect((await store.neededJobs()).sort()).toEqual([first, second].sort())
      await succeed(store, first)
      expect(await store.unfinishedNeeds(waiting)).toEqual([second])
      expect(await store.waitingJob(first)).toBe(waiting)
      await succeed(store, second)
      expect(await claim(store)).toBeUndefined()
      expect((await store.settledNeeds()).map(({ jobId, state }) => [jobId, state])).toEqual([
        [waiting, 'success'],
        [waiting, 'success'],
      ])
      const release = { at: 4, queueUntil: 5, workspace: { sha256: 'a'.repeat(64), size: 7 } }
      expect(await Promise.all([1, 2].map(() => store.releaseJob(waiting, release)))).toEqual([true, false])
      expect(await store.isBlobUsed('a'.repeat(64))).toBe(true)
      const claimed = await claim(store)
      expect(claimed?.job.id).toBe(waiting)
      expect(claimed?.manifest.workspace).toEqual({ patch: false, blob: 'a'.repeat(64) })
      expect(await store.waitingJob(first)).toBeUndefined()
    })

    it('are reported as soon as one of them has failed or is gone, and forgotten with the waiting job', async () => {
      const store = await open()
      const [running, failed] = [await submit(store), await submit(store)]
      const waiting = await submit(store, { needs: [running, failed] })
      await finish(store, failed, 2)
      expect(await store.settledNeeds()).toEqual([{ jobId: waiting, neededId: failed, state: 'failed' }])
      await store.deleteJob(failed)
      expect(await store.settledNeeds()).toEqual([{ jobId: waiting, neededId: failed, state: null }])
      await finish(store, waiting, 3)
      expect(await store.settledNeeds()).toEqual([])
      expect(await store.neededJobs()).toEqual([])
    })
  })

  describe('output', () => {
    const chunk = (
      offset: number,
      data: Uint8Array,
      stream: 'stdout' | 'stderr' = 'stdout',
    ): OutputChunk => ({
      stream,
      offset,
      data,
      at: 1,
    })

    it('reads back every byte from every cursor, in order, with its stream', async () => {
      const store = await open()
      await fc.assert(
        fc.asyncProperty(
          fc.array(
            fc.tuple(
              fc.constantFrom('stdout' as const, 'stderr' as const),
              fc.uint8Array({ minLength: 1, maxLength: 50 }),
            ),
            { maxLength: 20 },
          ),
          fc.nat(400),
          fc.integer({ min: 1, max: 200 }),
          async (pieces, from, maxBytes) => {
            const id = await submit(store)
            let offset = 0
            const all: [string, number][] = []
            for (const [stream, data] of pieces) {
              await store.appendOutput(
                id,
                {
                  position: offset,
                  chunks: [chunk(offset, data, stream)],
                  outputBytes: offset + data.length,
                },
                { head: 10_000, tail: 10_000 },
              )
              for (const byte of data) all.push([stream, byte])
              offset += data.length
            }
            const read: [string, number][] = []
            let cursor = from
            for (let turns = 0; turns < 500; turns++) {
              const chunks = await store.readOutput(id, cursor, maxBytes)
              if (chunks.length === 0) break
              for (const one of chunks) {
                expect(one.offset).toBe(cursor)
                for (const byte of one.data) read.push([one.stream, byte])
                cursor += one.data.length
              }
            }
            expect(read).toEqual(all.slice(from))
          },
        ),
        { numRuns: 50 },
      )
    })

    it('keeps the head and the tail, drops the middle, and stays small', async () => {
      const store = await open()
      const id = await submit(store)
      const keep = { head: 1000, tail: 1000 }
      for (let offset = 0; offset < 100_000; offset += 100)
        await store.appendOutput(
          id,
          {
            position: offset,
            chunks: [chunk(offset, Buffer.alloc(100, offset / 100))],
            outputBytes: offset + 100,
          },
          keep,
        )
      const chunks = await store.readOutput(id, 0, 1_000_000)
      const size = chunks.reduce((sum, one) => sum + one.data.length, 0)
      expect(size).toBeLessThanOrEqual(2300)
      expect(chunks[0]!.offset).toBe(0)
      expect(chunks.at(-1)!.offset + chunks.at(-1)!.data.length).toBe(100_000)
      const head = chunks.filter(one => one.offset < 1000).reduce((sum, one) => sum + one.data.length, 0)
      const tail = chunks.filter(one => one.offset >= 99_000).reduce((sum, one) => sum + one.data.length, 0)
      expect({ head, tail }).toEqual({ head: 1000, tail: 1000 })
    })

    it('that is written twice after a crash is stored once', async () => {
      const store = await open()
      const id = await submit(store)
      const batch = { position: 5, chunks: [chunk(0, Buffer.from('hello'))], outputBytes: 5 }
      await store.appendOutput(id, batch, { head: 100, tail: 100 })
      await store.appendOutput(id, batch, { head: 100, tail: 100 })
      const read = await store.readOutput(id, 0, 100)
      expect(Buffer.concat(read.map(one => one.data)).toString()).toBe('hello')
    })

    it('stores a heartbeat and machine details in the same write', async () => {
      const store = await open()
      const id = await submit(store)
      const claimed = await store.claim({ runtime: 'sandbox', machineId: newId(), now: 1 })
      const machine = { id: claimed!.machine.id, details: { finished: true } }
      const keep = { head: 100, tail: 100 }
      await store.appendOutput(id, { position: 1, chunks: [], outputBytes: 1, heartbeatAt: 7, machine }, keep)
      await store.appendOutput(id, { position: 2, chunks: [], outputBytes: 2 }, keep)
      expect(await store.getJob(id)).toMatchObject({ heartbeatAt: 7, position: 2, outputBytes: 2 })
      expect(await store.getMachine(machine.id)).toMatchObject({ state: 'busy', details: { finished: true } })
    })
  })

  describe('lists', () => {
    it('page through all jobs, newest first, by status and label', async () => {
      const store = await open()
      const ids: string[] = []
      for (let i = 0; i < 25; i++)
        ids.push(await submit(store, { labels: { team: i % 2 === 0 ? 'red' : 'blue' } }))
      await finish(store, ids[3]!, 5)
      const pages: string[] = []
      let before: string | undefined
      for (;;) {
        const page = await store.listJobs({ limit: 10, ...(before && { before }) })
        pages.push(...page.map(job => job.id))
        if (page.length < 10) break
        before = page.at(-1)!.id
      }
      expect(pages).toEqual([...ids].reverse())
      expect((await store.listJobs({ limit: 100, status: 'failed' })).map(job => job.id)).toEqual([ids[3]])
      expect(await store.listJobs({ limit: 100, label: { name: 'team', value: 'blue' } })).toHaveLength(12)
      expect(await store.listJobs({ limit: 100, label: { name: 'team' } })).toHaveLength(25)
      expect(await store.listJobs({ limit: 100, label: { name: 'none' } })).toHaveLength(0)
    })

    it('are found by agent, origin, node and time, without the members of batches', async () => {
      const store = await open()
      const first = await submit(store, { agentType: 'claude' }, 1000)
      const second = await submit(store, {}, 2000)
      const found = async (query: object) =>
        (await store.listJobs({ limit: 10, ...query })).map(job => (job.id === first ? 'first' : 'second'))
      expect(await found({ agent: 'claude' })).toEqual(['first'])
      expect(await found({ origin: 'te' })).toEqual(['second', 'first'])
      expect(await found({ origin: 'est' })).toEqual([])
      expect(await found({ since: 1001 })).toEqual(['second'])
      expect(await found({ until: 2000 })).toEqual(['first'])
      expect(await found({ parentId: null })).toEqual(['second', 'first'])
      expect(await found({ parentId: first })).toEqual([])
      const executedOn = { node: 'n1', because: 'it is idle' }
      const result = { ...NOTHING, executedOn }
      await store.move(second, 'cancelled', { completedAt: 3000, result }, { at: 3000, data: {} })
      expect(await found({ node: 'n1' })).toEqual(['second'])
      expect(await found({ node: 'n2' })).toEqual([])
    })

    it('page in other orders: oldest first, longest first', async () => {
      const store = await open()
      const ids: string[] = []
      const durations = [5, 70, 5, 30, 0]
      for (const duration of durations) {
        const id = await submit(store)
        ids.push(id)
        if (duration === 0) continue
        await store.claim({ runtime: 'sandbox', machineId: newId(), now: 10 })
        await store.move(id, 'running', { startedAt: 100 }, { at: 100, data: {} })
        await store.move(id, 'success', { completedAt: 100 + duration }, { at: 200, data: {} })
      }
      const pages = async (sort: 'oldest' | 'longest') => {
        const seen: number[] = []
        for (let before: string | undefined; ; ) {
          const page = await store.listJobs({ limit: 2, sort, ...(before && { before }) })
          seen.push(...page.map(job => ids.indexOf(job.id)))
          if (page.length < 2) return seen
          before = page.at(-1)!.id
        }
      }
      expect(await pages('oldest')).toEqual([0, 1, 2, 3, 4])
      expect(await pages('longest')).toEqual([1, 3, 2, 0, 4])
    })
  })

  describe('retention', () => {
    const forever = { jobs: 1_000_000, bytes: 1e15, before: 0 }

    it('deletes by age, by count and by bytes, oldest first, and never an unfinished job', async () => {
      const store = await open()
      const ids: string[] = []
      for (let i = 0; i < 6; i++) ids.push(await submit(store))
      for (const [i, id] of ids.slice(0, 5).entries()) {
        await store.appendOutput(
          id,
          {
            position: 0,
            chunks: [{ stream: 'stdout', offset: 0, data: Buffer.alloc(100), at: 1 }],
            outputBytes: 100,
          },
          { head: 1000, tail: 1000 },
        )
        await finish(store, id, 1000 + i)
      }
      expect(await store.expiredJobs(forever)).toEqual([])
      expect(await store.expiredJobs({ ...forever, before: 1002 })).toEqual(ids.slice(0, 2))
      expect(await store.expiredJobs({ ...forever, jobs: 2 })).toEqual(ids.slice(0, 3))
      expect(await store.expiredJobs({ ...forever, bytes: 250 })).toEqual(ids.slice(0, 3))
      expect(await store.expiredJobs({ jobs: 0, bytes: 0, before: 1e15 })).toEqual(ids.slice(0, 5))
      expect(await store.deleteJob(ids[5]!)).toBeUndefined()
      expect(await store.deleteJob(ids[0]!)).toEqual([])
      expect(await store.getJob(ids[0]!)).toBeUndefined()
      expect(await store.readOutput(ids[0]!, 0, 1000)).toEqual([])
      expect(await store.events({ jobId: ids[0]!, after: 0, limit: 10 })).toEqual([])
    })

    it('knows which blobs are still needed', async () => {
      const store = await open()
      const blob = 'a'.repeat(64)
      const id = await submit(store, { workspace: { blob } })
      expect(await store.isBlobUsed(blob)).toBe(true)
      await finish(store, id, 1)
      expect(await store.deleteJob(id)).toEqual([blob])
      expect(await store.isBlobUsed(blob)).toBe(false)
    })

    it('lets go of a blob that was stored for a job after its end, with the job', async () => {
      const store = await open()
      const blob = 'b'.repeat(64)
      const id = await submit(store)
      await finish(store, id, 1)
      await store.holdBlob(blob, id)
      expect(await store.isBlobUsed(blob)).toBe(true)
      expect(await store.deleteJob(id)).toEqual([blob])
      expect(await store.isBlobUsed(blob)).toBe(false)
    })
  })

  it('takes times with fractions of a millisecond', async () => {
    const store = await open()
    const id = await submit(store, {}, 1000.25)
    await store.claim({ runtime: 'sandbox', machineId: newId(), now: 2000.5 })
    await store.heartbeat(id, 2000.75)
    await finish(store, id, 3000.5)
    await store.releaseStaleBlobs(3000.5)
    expect(await store.overdueJobs(3000.5)).toEqual([])
    expect(await store.getJob(id)).toMatchObject({ createdAt: 1000.25, completedAt: 3000.5 })
  })

  describe('the figures of a minute', () => {
    it('tell how jobs ended, how long they waited and ran, and who holds slots', async () => {
      const store = await open()
      const at = 60_000
      const done = await submit(store)
      const { job } = (await store.claim({ runtime: 'sandbox', machineId: newId(), now: at }))!
      expect(job.id).toBe(done)
      await store.move(done, 'running', { startedAt: job.createdAt + 500 }, { at, data: {} })
      const completedAt = 120_000
      await store.move(done, 'success', { completedAt }, { at: completedAt, data: {} })
      await submit(store)
      const sample = await store.measureMinute(completedAt)
      expect(sample).toMatchObject({
        at: completedAt,
        ended: { success: 1, failed: 0 },
        pending: 1,
        slots: {},
      })
      expect(sample.wait).toEqual({ p50: 500, p95: 500 })
      expect((await store.measureMinute(completedAt - 60_000)).ended.success).toBe(0)
      await store.saveSample(sample, 0)
      await store.saveSample({ ...sample, at: completedAt + 60_000 }, completedAt + 1)
      expect((await store.samples(0)).map(one => one.at)).toEqual([completedAt + 60_000])
    })
  })
}
