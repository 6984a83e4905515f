import { resolve } from 'node:path'
import { isTerminal } from '../../jobs/states.ts'
import { commandResult } from '../../routing/command-result.ts'
import { shellQuote } from '../../runner/shell-words.ts'
import type { Context } from '../context.ts'
import { exitStatusOf } from '../exit-status.ts'
import { requirements } from '../manifest/from-input.ts'
import { resolveJobId } from '../resolve-id.ts'

interface RoutedFlags {
  readonly node?: string | undefined
  readonly requires?: string | undefined
  readonly cwd?: string | undefined
  readonly timeout?: number | undefined
  readonly 'no-route': boolean
  readonly json: boolean
}

/** Submits a routed command, waits for its end and prints id, status, node and output. */
export const submitRouted = async (
  context: Context,
  words: readonly string[],
  flags: RoutedFlags,
): Promise<number> => {
  const { node = flags.node, ...requires } = requirements(flags.requires, 'cluster')
  const client = await context.client()
  const { job, auto_routed, routing, local_node } = await client.routeCommand({
    command: words.length === 1 ? words[0]! : words.map(plainOrQuoted).join(' '),
    requires,
    auto_route: !flags['no-route'],
    ...(node !== undefined && { node }),
    ...(flags.cwd !== undefined && { cwd: resolve(flags.cwd) }),
    ...(flags.timeout !== undefined && { timeout: flags.timeout }),
  })
  if (!flags.json) await context.print(`Task ID: ${job.job_id}\n`)
  const { watchJob } = await import('../watch-job.ts')
  const last = await watchJob(context, client, job, { raw: false, quiet: true, mute: true })
  if (flags.json) {
    const answer = await commandResult(client, job.job_id, local_node, new AbortController().signal)
    await context.printJson({ why: routing, ...answer, auto_routed, routing })
    return exitStatusOf(last)
  }
  const result = await client.result(last.job_id)
  const executedOn = result.executed_on?.node ?? (result.runtime === 'host' ? local_node : '–')
  await context.print(`Status: ${result.status}\nNode: ${executedOn}\n`)
  // 'Requested node' adds nothing when the user named the node.
  const why = auto_routed ? [routing, result.executed_on?.because] : [result.executed_on?.because ?? routing]
  await context.print(`Why: ${why.filter(Boolean).join(' ')}\n`)
  if (result.output !== '')
    await context.print(`Output:\n${result.output}${result.output.endsWith('\n') ? '' : '\n'}`)
  if (result.error) await context.print(`Error: ${result.error.message}\n`)
  return exitStatusOf(last)
}

/** The command is shown in lists: quotes stand only where they are needed. */
const plainOrQuoted = (word: string): string =>
  /^[\w@%+:,./-]+$/.test(word) && !KEYWORD.test(word) ? word : shellQuote(word)

const KEYWORD = /^(if|then|elif|else|fi|for|while|until|do|done|case|esac|in|select|function|time|coproc)$/

/** The job of a routed command, and on which node it ran and why. */
export const routedStatus = async (context: Context, id: string): Promise<Record<string, unknown>> => {
  const client = await context.client()
  const job = await client.get(await resolveJobId(client, id))
  if (!isTerminal(job.status)) return { ...job }
  const { executed_on } = await client.result(job.job_id, { maxBytes: 0 })
  return { ...job, ...(executed_on && { executed_on }) }
}
