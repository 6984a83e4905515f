import { resolve } from 'node:path'
import { shellJoin } from '../../cluster/remote/quote.ts'
import { loadConfig } from '../../config/load.ts'
import { openCluster } from '../../daemon/cluster.ts'
import { AppError } from '../../jobs/errors.ts'
import { clusterStatusData } from '../../mcp/tools/cluster/cluster-status.ts'
import { planRouted } from '../../mcp/tools/cluster/plan.ts'
import type { Context } from '../context.ts'
import { exitStatusOf } from '../exit-status.ts'
import { requirements } from '../manifest/from-input.ts'

interface RoutedFlags {
  readonly node?: string | undefined
  readonly requires?: string | undefined
  readonly cwd?: string | undefined
  readonly timeout?: number | undefined
  readonly 'no-route': boolean
}

/** Submits, stays to the end, and tells what a script wants to know: id, status, node, output. */
export const submitRouted = async (
  context: Context,
  words: readonly string[],
  flags: RoutedFlags,
): Promise<number> =>
  withTools(context, async tools => {
    const plan = planRouted(
      {
        command: words.length === 1 ? words[0]! : shellJoin(words),
        requires: requirements(flags.requires, 'cluster'),
        node: flags.node,
        autoRoute: !flags['no-route'],
        cwd: flags.cwd === undefined ? undefined : resolve(flags.cwd),
        timeoutSeconds: flags.timeout,
      },
      tools,
    )
    const client = await context.client()
    const job = await client.submit(plan.manifest)
    await context.print(`Task ID: ${job.job_id}\n`)
    const { watchJob } = await import('../watch-job.ts')
    const last = await watchJob(context, client, job, { raw: false, quiet: true, mute: true })
    const result = await client.result(last.job_id)
    const node = result.executed_on?.node ?? (result.runtime === 'host' ? tools.localName : '–')
    await context.print(`Status: ${result.status}\nNode: ${node}\n`)
    await context.print(`Why: ${[plan.because, result.executed_on?.because].filter(Boolean).join(' ')}\n`)
    if (result.output !== '')
      await context.print(`Output:\n${result.output}${result.output.endsWith('\n') ? '' : '\n'}`)
    if (result.error) await context.print(`Error: ${result.error.message}\n`)
    return exitStatusOf(last)
  })

export const clusterStatusJson = (context: Context): Promise<Record<string, unknown>> =>
  withTools(context, async tools => {
    const client = await context.client()
    return clusterStatusData(tools, {
      list: filter => client.list(filter),
      // The daemon's own count is not at hand; the node's is.
      running: ({ report }) => report?.jobs ?? 0,
      signal: new AbortController().signal,
    })
  })

const withTools = async <T>(
  context: Context,
  work: (tools: ReturnType<typeof openCluster>) => Promise<T>,
): Promise<T> => {
  const { config } = loadConfig(context.home, context.env)
  if (config.cluster.nodes.length === 0)
    throw new AppError('not_found', 'There are no nodes.', { hint: 'Add one: deputy nodes add user@host' })
  const tools = openCluster({
    home: context.home,
    config,
    env: context.env,
    stopping: new AbortController().signal,
  })
  try {
    return await work(tools)
  } finally {
    tools.cluster.close()
  }
}
