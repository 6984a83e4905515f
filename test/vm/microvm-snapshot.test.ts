import { cpSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../src/jobs/ids.ts'
import { type ManifestInput, parseManifest } from '../../src/jobs/manifest.ts'
import type { Machine } from '../../src/ports.ts'
import { storeImage } from '../../src/providers/microvm/image-store.ts'
import { createMicrovmProvider } from '../../src/providers/microvm/microvm-provider.ts'
import { testImage } from '../support/microvm.ts'
import { createHarness, type Harness } from '../support/providers.ts'
import { removeDirectory } from '../support/remove-directory.ts'
import { requireOrSkip } from '../support/require.ts'

const { imagesDir, image, missing } = await testImage()
requireOrSkip(missing)

/** The last line tells one boot from another: the agent is copied there when a VM boots. */
const PRINT = 'date +%s%3N; od -An -N16 -tx1 /dev/urandom; stat -c %y /run/agent.pl'

describe.skipIf(missing !== undefined)('VMs that start from a snapshot', () => {
  let harness: Harness
  let images: string
  const logged: string[] = []

  beforeAll(async () => {
    // That of the daemon.
    process.umask(0o077)
    images = mkdtempSync(join(tmpdir(), 'deputy-images-'))
    makeImage()
    harness = await createHarness((stateDir, blobs) =>
      createMicrovmProvider({
        ...{ stateDir, blobs, imagesDir: images, image: 'default' },
        log: (message, { err }) => void logged.push(`${message}: ${err}`),
      }),
    )
  })
  afterAll(async () => {
    await harness.dispose()
    removeDirectory(images)
  })

  const makeImage = () => {
    const from = join(images, 'NEW')
    cpSync(join(imagesDir!, image!), from, { recursive: true })
    storeImage(images, { name: 'default', from, kernel: 'test', contents: 'test' })
  }
  const start = async (input: Partial<ManifestInput> = {}) => {
    const begun = Date.now()
    const { outcome, sink } = await harness.run({ task: PRINT, timeout: 600, ...input })
    expect(outcome).toMatchObject({ kind: 'exit', exit: { code: 0 } })
    const [time, random, boot] = sink.text().split('\n')
    return { begun, time: Number(time), random, boot }
  }

  it('are of one boot, each with the time of now and random numbers of its own', async () => {
    const vms = [await start(), ...(await Promise.all([start(), start()]))]
    expect(logged).toEqual([])
    expect(new Set(vms.map(({ boot }) => boot)).size).toBe(1)
    expect(new Set(vms.map(({ random }) => random)).size).toBe(3)
    for (const { begun, time } of vms) expect(time).toBeGreaterThanOrEqual(begun)
  })

  it('can start before there is a job, and serve the one that comes', async () => {
    const { boot } = await start()
    const machine: Machine = { id: newId(), runtime: 'microvm', jobId: null, details: {} }
    const remember = async (details: Record<string, unknown>) => void Object.assign(machine.details, details)
    const signal = AbortSignal.timeout(240_000)
    await harness.provider.create({ machine, kind: 'default', remember, signal })
    const ready = { ...machine.details }
    expect(harness.provider.pool?.kindFor(parseManifest({ task: 'true' }))).toBe('default')
    // As the engine does with a machine of the pool, after a restart too: it is ready already.
    await harness.provider.create({ machine, manifest: parseManifest({ task: 'true' }), remember, signal })
    expect(machine.details).toEqual(ready)
    const { outcome, sink } = await harness.launch({ task: PRINT, timeout: 600 }, {}, machine)
    expect(await outcome).toMatchObject({ kind: 'exit', exit: { code: 0 } })
    expect(sink.text().split('\n')[2]).toBe(boot)
    await harness.provider.destroy(machine, signal)
  })

  it('boot where a job asks for resources, and once more for a new image', async () => {
    const { boot } = await start()
    expect((await start({ resources: { memory: '300M' } })).boot).not.toBe(boot)
    makeImage()
    const renewed = await start()
    expect(renewed.boot).not.toBe(boot)
    expect((await start()).boot).toBe(renewed.boot)
    expect(logged).toEqual([])
  })
})
