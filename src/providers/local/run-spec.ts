import { AppError } from '../../jobs/errors.ts'
import { type StartRequest, tenths } from '../../runner/client.ts'
import type { ShimStart } from '../../runner/shim-start.ts'

/** One run as a shim knows it. */
export interface RunSpec extends ShimStart {
  readonly machineId: string
  readonly runId: string
  readonly argv: readonly string[]
  /** Without the secrets. */
  readonly env: Readonly<Record<string, string>>
  readonly graceSeconds: number
}

export const toRunSpec = ({ shim, ...start }: StartRequest): RunSpec => {
  if (shim === undefined)
    throw new AppError('invalid', `The request to start ${start.run} is not one for a shim.`)
  return {
    ...shim,
    machineId: start.workspace,
    runId: start.run,
    argv: start.argv,
    env: Object.fromEntries(start.env.map(line => splitOnce(line, '='))),
    graceSeconds: start.graceTenths / 10,
  }
}

/** The request that `toRunSpec` reads. Names that no shell can export are left out. */
export const toStartRequest = ({
  machineId,
  runId,
  argv,
  env,
  graceSeconds,
  ...shim
}: RunSpec): StartRequest => ({
  kind: 'start',
  run: runId,
  workspace: machineId,
  from: 0,
  timeoutSeconds: Math.ceil(shim.timeoutSeconds),
  graceTenths: tenths(graceSeconds),
  keepHead: shim.keep.head,
  keepTail: shim.keep.tail,
  context: '',
  env: Object.entries(env).flatMap(([name, value]) =>
    /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? [`${name}=${value}`] : [],
  ),
  argv: [...argv],
  shim,
})

const splitOnce = (text: string, by: string): [string, string] => {
  const at = text.indexOf(by)
  return [text.slice(0, at), text.slice(at + by.length)]
}
