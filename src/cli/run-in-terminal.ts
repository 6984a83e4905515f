import type { Client } from '../client/daemon-client.ts'
import { runInTerminal } from '../client/open-shell.ts'
import { usage } from './args/parse.ts'
import type { Context } from './context.ts'
import { exitStatusOf } from './exit-status.ts'
import { explainEnd } from './explain-end.ts'
import { onInterrupt } from './interrupt.ts'
import { attachTerminal, sizeOf } from './terminal/attach-terminal.ts'
import { createStatusLine } from './terminal/status-line.ts'
import { untilTerminal } from './watch-job.ts'

interface Options {
  readonly command?: readonly string[]
  readonly record: boolean
}

/** Runs a job in this terminal. Resolves with its exit status. */
export const runJobInTerminal = async (
  context: Context,
  client: Client,
  manifest: Readonly<Record<string, unknown>>,
  { command, record }: Options,
): Promise<number> => {
  const leave = new AbortController()
  const line = createStatusLine(context.err, context.errColors)
  const stop = (): void => leave.abort(new Error('interrupted'))
  const interrupts = onInterrupt(stop, stop)
  try {
    line.set('preparing a machine')
    const shell = await runInTerminal(client, manifest, {
      ...(command && { command }),
      record,
      env: terminalVariables(context),
      terminal: sizeOf(process.stdout),
      signal: leave.signal,
    })
    await line.stop()
    await attachTerminal(shell, process)
    const job = await untilTerminal(client, shell.jobId, leave.signal)
    await explainEnd(context, job)
    return exitStatusOf(job)
  } finally {
    await line.stop()
    interrupts.dispose()
  }
}

export const requireTerminal = (instead: string, command: string): void => {
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw usage(`This needs a terminal, but stdin or stdout is not one. Use ${instead}.`, command)
}

/** How programs should draw on this terminal. */
export const terminalVariables = ({ env }: Context): Record<string, string> => ({
  ...(env.TERM && { TERM: env.TERM }),
  ...(env.COLORTERM && { COLORTERM: env.COLORTERM }),
})
