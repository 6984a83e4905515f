import { WORKSPACE } from '../../jobs/paths.ts'
import type { Run } from '../../ports.ts'
import type { RunOptions } from '../../runner/run.ts'
import { type RunContext, type SealingKeys, sealContext } from '../../runner/sealed-context.ts'
import { argvElsewhere, type Launch, startRequest } from '../../runner/start-request.ts'

export interface LaunchOptions extends Pick<RunOptions, 'keep' | 'graceSeconds'> {
  /** Seal the context of a run. */
  readonly keys: SealingKeys
  readonly run: Run
  readonly isolation: readonly string[]
}

/** The start request of a job. */
export const launchRequest = ({ run, isolation, keep, graceSeconds, keys }: LaunchOptions): Launch => {
  const { command } = run
  const context: RunContext = {
    secrets: Object.values(command.secrets),
    format: command.format,
    isolation: [...isolation],
    timeoutSeconds: command.timeoutSeconds,
  }
  const start = startRequest({
    run,
    keep,
    graceSeconds,
    context: sealContext(context, keys),
    env: { HOME: WORKSPACE, ...command.env, ...command.secrets },
    argv: withShellOfImage(command),
  })
  return { start, context }
}

const ANY_SHELL = 'if command -v bash >/dev/null; then exec bash "$@"; else exec sh "$@"; fi'

/** Many images have no bash: a script then runs in sh. */
const withShellOfImage = (command: Run['command']): string[] => {
  const [program, ...rest] = command.argv
  if (program === 'bash' && rest[0] === '-c' && rest.length === 2)
    return ['sh', '-c', ANY_SHELL, 'sh', ...rest]
  return argvElsewhere(command)
}
