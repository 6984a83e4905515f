import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../../src/jobs/ids.ts'
import { createBlobs } from '../../../src/store/blob-store.ts'
import { begin } from '../../support/begin-engine.ts'
import { until } from '../../support/engine.ts'
import { createScriptedProvider } from '../../support/scripted-provider.ts'

const never = new AbortController().signal

async function* bytes(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text)
}

const filesBelow = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => entry.name)

describe('stored files', () => {
  let directory: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'deputy-blobs-'))
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))
  const unused = { holdBlob: async () => {}, isBlobUsed: async () => false }

  it('larger than allowed are rejected while they arrive, and leave nothing', async () => {
    const blobs = createBlobs(directory, unused)
    await expect(blobs.put(bytes('12345', '67890', '1'), 10, 'job')).rejects.toMatchObject({
      code: 'too_large',
    })
    expect(filesBelow(directory)).toEqual([])
    expect(await blobs.put(bytes('12345', '67890'), 10, 'job')).toMatchObject({ size: 10 })
  })

  it('are reported as stored only when no removal is in progress', async () => {
    let answer = (_: boolean): void => {}
    const blobs = createBlobs(directory, {
      ...unused,
      isBlobUsed: () =>
        new Promise(resolve => {
          answer = resolve
        }),
    })
    const { sha256 } = await blobs.put(bytes('shared'), 100, 'first')
    const removed = blobs.removeUnused(sha256)
    const held = blobs.hold(sha256, 'second')
    await new Promise(resolve => setImmediate(resolve))
    answer(false)
    await removed
    expect(await held).toBe(false)
    expect(existsSync(blobs.path(sha256))).toBe(false)
  })

  it('that are adopted keep their original, so that the call can be repeated after a crash', async () => {
    const blobs = createBlobs(directory, unused)
    const { sha256, size } = await blobs.put(bytes('content'), 100, 'job')
    await blobs.removeUnused(sha256)
    const file = join(directory, 'made-by-a-job')
    writeFileSync(file, 'content')
    await blobs.adopt(file, { sha256, size }, 'job')
    await blobs.adopt(file, { sha256, size }, 'job')
    expect(existsSync(file)).toBe(true)
    expect(existsSync(blobs.path(sha256))).toBe(true)
  })
})

describe('artifacts with the same content', () => {
  const finishedWith = async (count: number) => {
    const provider = createScriptedProvider('sandbox', { limit: count })
    const engine = await begin([provider])
    const blobs = createBlobs(join(engine.directory, 'blobs'), engine.store)
    const submit = async () => {
      const { job_id } = await engine.deputy.submit({ task: 'x' }, 'test')
      return { id: job_id, run: await provider.started(job_id) }
    }
    const finish = async ({ id, run }: Awaited<ReturnType<typeof submit>>, text: string) => {
      const blob = await blobs.put(bytes(text), 100, id)
      run.finish({ artifacts: [{ path: 'out.txt', ...blob }] })
      await engine.deputy.wait(id, { timeoutMs: 10_000, signal: never })
      return blob
    }
    /** The machine is on its way out: a job that has one is not deleted. */
    const settled = () => until(async () => (await engine.deputy.machines()).length === 0, 'no machine')
    return { engine, blobs, submit, finish, settled }
  }

  it('are removed at once with the last job that refers to them', async () => {
    const { engine, blobs, submit, finish, settled } = await finishedWith(2)
    const [one, two] = [await submit(), await submit()]
    const { sha256 } = await finish(one, 'same')
    await finish(two, 'same')
    await settled()
    await engine.deputy.delete(one.id)
    expect(existsSync(blobs.path(sha256))).toBe(true)
    await engine.deputy.delete(two.id)
    expect(filesBelow(join(engine.directory, 'blobs'))).toEqual([])
  })

  it('survive the deletion of one job while another that needs them is not written yet', async () => {
    const { engine, blobs, submit, finish, settled } = await finishedWith(2)
    const first = await submit()
    const { sha256, size } = await finish(first, 'same')
    await settled()
    const second = await submit()
    expect(await blobs.hold(sha256, second.id)).toBe(true)
    await engine.deputy.delete(first.id)
    second.run.finish({ artifacts: [{ path: 'out.txt', sha256, size }] })
    await engine.deputy.wait(second.id, { timeoutMs: 10_000, signal: never })
    expect(existsSync(blobs.path(sha256))).toBe(true)
  })

  it('that were uploaded for a job survive until it is submitted, whatever is deleted meanwhile', async () => {
    const { engine, blobs, submit, finish, settled } = await finishedWith(2)
    const first = await submit()
    const { sha256 } = await finish(first, 'same')
    await settled()
    await engine.deputy.putBlob(bytes('same'))
    await engine.deputy.delete(first.id)
    expect(existsSync(blobs.path(sha256))).toBe(true)
    const { status } = await engine.deputy.submit({ task: 'x', workspace: { blob: sha256 } }, 'test')
    expect(status).toBe('pending')
  })

  it('are not held for ever by a job that was never submitted', async () => {
    const { engine, blobs } = await finishedWith(1)
    const { sha256 } = await blobs.put(bytes('left'), 100, newId(Date.now()))
    await blobs.removeUnused(sha256)
    expect(existsSync(blobs.path(sha256))).toBe(true)
    await engine.store.releaseStaleBlobs(Date.now() + 1)
    await blobs.removeUnused(sha256)
    expect(existsSync(blobs.path(sha256))).toBe(false)
  })
})
