import { describe, expect, it } from 'vitest'
import { createTestCli, noProvider } from '../../support/cli.ts'
import { useDaemons } from '../../support/daemon.ts'
import { until } from '../../support/engine.ts'
import { requireOrSkip } from '../../support/require.ts'

const missing = requireOrSkip(await noProvider())
const start = useDaemons()
const never = new AbortController().signal

describe.skipIf(missing)('jobs that need others', () => {
  it('reads the artifacts of these jobs, also after the daemon was killed while it waited', async () => {
    const first = await start()
    const { client } = first
    // The pause only makes it likely that the daemon dies first; the result is the same when it does not.
    const build = await client.submit({
      task: 'mkdir out; sleep 2; echo built > out/app',
      artifacts: ['out/**'],
      runtime: 'sandbox',
    })
    const test = await client.submit({
      task: `cat needs/${build.job_id}/out/app; cp needs/*/out/app copy`,
      needs: [build.job_id],
      artifacts: ['copy'],
      runtime: 'sandbox',
    })
    const deploy = await client.submit({
      task: `cat needs/${test.job_id}/copy`,
      needs: [test.job_id, build.job_id],
      runtime: 'sandbox',
    })
    expect(deploy.waits_for).toEqual([build.job_id, test.job_id].sort())
    await first.kill('SIGKILL')
    const { client: next } = await start({ directory: first.directory })
    let done = await next.get(deploy.job_id)
    await until(async () => {
      done = await next.wait(deploy.job_id, { timeoutMs: 10_000, signal: never })
      return done.completed_at !== null
    }, 'the last job ends')
    expect(done).toMatchObject({ status: 'success', error: null })
    expect((await next.result(deploy.job_id)).output).toBe('built\n')
    expect((await next.result(test.job_id)).output).toBe('built\n')
  })

  it('are named on the command line, shortened too, and in the reason of the failure', async () => {
    const cli = createTestCli()
    try {
      const id = (await cli.run(['submit', '--', 'exit 3'])).stdout.trim()
      const after = (await cli.run(['submit', '--needs', id.slice(-12), '--', 'true'])).stdout.trim()
      await cli.run(['logs', '-f', after])
      const result = await cli.run(['result', after])
      expect(result.stdout + result.stderr).toContain(`Job ${id}, which this job needs, has failed.`)
    } finally {
      await cli.close()
    }
  })
})
