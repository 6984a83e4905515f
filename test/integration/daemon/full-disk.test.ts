import { execFileSync } from 'node:child_process'
import { closeSync, openSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { newHome, removeDirectory, startDaemon, type TestDaemon } from '../../support/daemon.ts'
import { until } from '../../support/engine.ts'

/** A small file system of its own; only root may mount one. */
const mountSmall = (directory: string): boolean => {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', directory], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const canMount = ((): boolean => {
  const probe = newHome()
  const mounted = mountSmall(probe)
  if (mounted) execFileSync('umount', ['-l', probe])
  removeDirectory(probe)
  return mounted
})()

let daemon: TestDaemon | undefined
let directory = ''

afterEach(async () => {
  await daemon?.kill()
  execFileSync('umount', ['-l', directory])
  removeDirectory(directory)
})

/** Leaves not a block free. */
const fill = (file: string): void => {
  for (let size = 8 * 2 ** 20; size >= 4096; size = Math.floor(size / 2))
    for (;;) {
      try {
        writeFileSync(file, Buffer.alloc(size), { flag: 'a' })
      } catch {
        break
      }
    }
}

describe.skipIf(!canMount)('a full disk (needs the right to mount)', () => {
  it('refuses submits with the reason, ends no job, and continues when there is room again', async () => {
    directory = newHome()
    mountSmall(directory)
    daemon = await startDaemon({ directory })
    const { client } = daemon
    const task = 'echo before; while [ ! -e /work/never ]; do echo tick; sleep 0.1; done'
    const { job_id } = await client.submit({ task, timeout: 300 })
    await until(async () => (await client.get(job_id)).output_bytes > 20, 'it runs')

    const ballast = join(directory, 'ballast')
    fill(ballast)
    expect(statfsSync(directory).bavail).toBe(0)
    await until(async () => {
      const error = await client.submit({ task: 'true' }).catch((thrown: unknown) => thrown)
      return (error as { code?: string }).code === 'unavailable'
    }, 'a submit is refused')
    expect((await client.get(job_id)).status).toBe('running')

    rmSync(ballast)
    await until(
      async () => (await client.submit({ task: 'true' }).catch(() => undefined)) !== undefined,
      'submits work again',
    )
    const before = (await client.get(job_id)).output_bytes
    await until(async () => (await client.get(job_id)).output_bytes > before, 'its output goes on', 20_000)
    await client.cancel(job_id)
    const view = await client.wait(job_id, { timeoutMs: 20_000, signal: AbortSignal.timeout(30_000) })
    expect(view.status).toBe('cancelled')
  })

  it('under the log of the daemon ends nothing, and a job that ends meanwhile is finished', async () => {
    directory = newHome()
    mountSmall(directory)
    const log = openSync(join(directory, 'daemon.log'), 'a')
    daemon = await startDaemon({ directory, stderr: log, env: { DEPUTY_LOG_LEVEL: 'debug' } })
    closeSync(log)
    const { client } = daemon
    const { job_id } = await client.submit({ task: 'echo on; sleep 3; exit 7', timeout: 300 })
    await until(async () => (await client.get(job_id)).output_bytes > 0, 'it runs')
    fill(join(directory, 'filled'))
    const view = await client.wait(job_id, { timeoutMs: 20_000, signal: AbortSignal.timeout(30_000) })
    expect(view).toMatchObject({ status: 'failed', exit_code: 7, error: { code: 'exit_code' } })
    await expect(client.submit({ task: 'true' })).rejects.toMatchObject({ code: 'unavailable' })

    await daemon.kill()
    daemon = await startDaemon({ directory })
    expect(await daemon.client.get(job_id)).toMatchObject({ status: 'failed', exit_code: 7 })
    rmSync(join(directory, 'filled'))
    const after = daemon.client
    await until(
      async () => (await after.submit({ task: 'true' }).catch(() => undefined)) !== undefined,
      'submits work again',
    )
  })
})
