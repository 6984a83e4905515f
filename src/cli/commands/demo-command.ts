import { isTerminal } from '../../jobs/states.ts'
import { defineCommand } from '../command.ts'
import { type Context, createContext } from '../context.ts'
import { stopDaemon } from '../stop-daemon.ts'
import { wrap } from '../terminal/wrap.ts'

export default defineCommand({
  usage: '',
  description: 'Starts a separate daemon in a temporary directory, runs four jobs and removes everything.',
  flags: {},
  async run(outer) {
    const { createFixture } = await import('../demo/fixture.ts')
    const { demoJobs } = await import('../demo/jobs.ts')
    const { playJob, printSummary } = await import('../demo/play.ts')
    const fixture = await createFixture()
    const env = { ...outer.env, DEPUTY_HOME: fixture.deputyHome, DEPUTY_HTTP: 'false' }
    const context = createContext({ env, argv: outer.colors.enabled ? [] : ['--no-color'] })
    const interrupted = new AbortController()
    const stop = (): void => interrupted.abort()
    process.once('SIGINT', stop).once('SIGTERM', stop)
    const { bold, dim, green, red, cyan } = context.colors
    try {
      await context.print(
        `${bold('Deputy')} hands tasks to isolated machines and brings back what they did.\n`,
      )
      const client = await context.client()
      const { pid } = await client.daemon()
      await context.print(`${dim(`Started a separate daemon (pid ${pid}) in ${fixture.deputyHome}.`)}\n`)
      const played = []
      for (const job of demoJobs(fixture))
        played.push(await playJob(context, client, job, interrupted.signal))
      const last = played.at(-1)!.result
      await context.print('\n')
      await printSummary(context, played)
      const isolation = wrap(
        `isolation: ${last.isolation.join(', ')}`,
        Math.min(context.out.columns, 100),
        11,
      )
      if (last.isolation.length > 0) await context.print(`\n${dim(isolation)}\n`)
      const good = played.every(({ demo, result }) => demo.expect(result))
      await context.print(
        `\n${good ? green('All jobs ended as expected.') : red('Some jobs did not end as expected. Run deputy doctor.')}\n\n` +
          `${bold('Now try')}\n` +
          `  ${cyan('deputy run -- uname -a')}                  ${dim('a command of your own')}\n` +
          `  ${cyan('deputy run --workspace . -- make test')}   ${dim('on a copy of this directory')}\n` +
          `  ${cyan('claude mcp add deputy -- deputy mcp')}     ${dim('let your agent delegate')}\n` +
          `  ${cyan('deputy doctor')}                           ${dim('what else works on this computer')}\n` +
          dim('(in a checkout: npm run -s deputy -- ARGS)\n'),
      )
      return good ? 0 : 1
    } catch (error) {
      if (interrupted.signal.aborted) return 130
      throw error
    } finally {
      process.off('SIGINT', stop).off('SIGTERM', stop)
      // The daemon may be gone already; the error of the demo is the one to report.
      await endJobs(context).catch(() => {})
      await stopDaemon(context, { ifIdle: false }).catch(() => {})
      context.close()
      await fixture.remove()
    }
  },
})

/** Jobs outlive their daemon, but the demo removes its home. */
const endJobs = async (context: Context): Promise<void> => {
  const client = await context.plainClient()
  const { jobs } = await client.list({ limit: 20 })
  for (const { job_id, status } of jobs) {
    if (isTerminal(status)) continue
    await client.cancel(job_id)
    await client.wait(job_id, { timeoutMs: 10_000, signal: AbortSignal.timeout(15_000) })
  }
}
