import { AppError } from '../../jobs/errors.ts'
import type { StartRequest } from '../../runner/client.ts'
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

const splitOnce = (text: string, by: string): [string, string] => {
  const at = text.indexOf(by)
  return [text.slice(0, at), text.slice(at + by.length)]
}
