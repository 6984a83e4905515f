import { basename, isAbsolute } from 'node:path'
import type { CommandSpec, Run } from '../ports.ts'
import { type StartRequest, tenths } from './client.ts'
import type { KeepLimits } from './keep-limits.ts'
import { runIdOf } from './run.ts'
import type { RunContext } from './sealed-context.ts'

export interface StartOptions {
  readonly run: Pick<Run, 'job' | 'machine' | 'command'>
  readonly keep: Pick<KeepLimits, 'head' | 'tail'>
  readonly graceSeconds: number
  /** Sealed; stored with the run. */
  readonly context?: string
  readonly env: Readonly<Record<string, string>>
  readonly argv: readonly string[]
}

/** What `driveRun` needs to start a command whose output the daemon redacts. */
export interface Launch {
  readonly start: Omit<StartRequest, 'from'>
  readonly context: RunContext
}

/** The request that starts the command of a job. */
export const startRequest = ({
  run,
  keep,
  graceSeconds,
  context = '',
  env,
  argv,
}: StartOptions): Omit<StartRequest, 'from'> => ({
  kind: 'start',
  run: runIdOf(run),
  workspace: run.machine.id,
  timeoutSeconds: Math.ceil(run.command.timeoutSeconds),
  graceTenths: tenths(graceSeconds),
  keepHead: keep.head,
  keepTail: keep.tail,
  context,
  env: variables(env),
  argv: [...argv],
})

/** The command on a machine with a system of its own: a program that was found on this computer goes by its name. */
export const argvElsewhere = ({ argv, programs }: Pick<CommandSpec, 'argv' | 'programs'>): string[] => {
  const [program = '', ...rest] = argv
  return [programs.length > 0 && isAbsolute(program) ? basename(program) : program, ...rest]
}

/** Skips names that no shell can export, and DEPUTY_JOB, which the runner sets. */
const variables = (env: Readonly<Record<string, string>>): string[] =>
  Object.entries(env)
    .filter(([name]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && name !== 'DEPUTY_JOB')
    .map(([name, value]) => `${name}=${value}`)
