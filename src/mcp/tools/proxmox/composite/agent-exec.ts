import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '../../../../jobs/errors.ts'
import { path } from '../../../../proxmox/encode.ts'
import { proxmoxDetails } from '../../../../proxmox/proxmox-errors.ts'
import type { Args, Composite, RowContext } from '../row-context.ts'
import type { Item } from '../shape/fields.ts'
import { asciiOnly, fromGuest } from './agent-text.ts'
import { item, text, without } from './values.ts'

const OUTPUT_CHARS = 16_000

export const agentExec: Composite = async (args, context) => {
  const { node, vmid } = args
  // Without `args`, the command is a shell command line.
  const words = Array.isArray(args.args) ? [args.command, ...args.args] : ['/bin/sh', '-c', args.command]
  const command = words.map(part => asciiOnly('command', String(part)))
  const input = text(args, 'input-data')
  if (input !== undefined) asciiOnly('input-data', input)
  const started = item(
    await context
      .call(
        'POST /nodes/{node}/qemu/{vmid}/agent/exec',
        without({ node, vmid, command, 'input-data': input }),
      )
      .catch(error => {
        throw isBrokenPipe(error) ? notStarted(vmid, command[0]!, error) : error
      }),
  )
  const pid = Number(started.pid)
  const seconds = args['capture-output'] === false ? 0 : Number(args.timeout ?? 30)
  return poll({ node, vmid, pid }, context, seconds)
}

/** If the guest cannot start the program, a Proxmox VE worker crashes on the quotes in the agent's message. */
const isBrokenPipe = (error: unknown): boolean =>
  proxmoxDetails(error)?.status === 596 && /broken pipe/i.test((error as Error).message)

const notStarted = (vmid: unknown, program: string, cause: unknown) =>
  new AppError('not_found', `The guest agent of VM ${String(vmid)} could not start '${program}'.`, {
    hint: `The program is missing or not executable in the guest (Proxmox VE reported 596 Broken pipe). Leave 'args' out to run a line through /bin/sh, e.g. "command -v ${program}"; in a guest without /bin/sh give the full path and 'args'.`,
    cause,
  })

export const agentStatus: Composite = async ({ node, vmid, pid }, { call }) =>
  report(pid, item(await call('GET /nodes/{node}/qemu/{vmid}/agent/exec-status', { node, vmid, pid })))

/**
 * Polls until the process exits. The agent reports the exit of a process only once. The polls bypass the gate, because
 * the call itself was authorized and logged.
 */
const poll = async (process: Args, { api, signal }: RowContext, seconds: number) => {
  const at = path`/nodes/${String(process.node)}/qemu/${String(process.vmid)}/agent/exec-status`
  const deadline = Date.now() + seconds * 1000
  for (let pause = 100; Date.now() < deadline; pause = Math.min(pause * 2, 2000)) {
    await sleep(Math.min(pause, Math.max(0, deadline - Date.now())), undefined, { signal })
    const status = item(await api.request('GET', at, { pid: Number(process.pid) }, { signal }))
    if (hasExited(status)) return report(process.pid, status)
  }
  return {
    pid: process.pid,
    exited: false,
    next: 'Call proxmox_agent_exec status with this pid; the result can be read once.',
  }
}

const report = (pid: unknown, status: Item) => {
  if (!hasExited(status)) return { pid, exited: false }
  const killed = status.signal === undefined ? {} : { killed: true, signal: Number(status.signal) }
  return {
    pid,
    exited: true,
    exitcode: status.exitcode === undefined ? null : Number(status.exitcode),
    ...killed,
    ...output('stdout', status['out-data'], status['out-truncated']),
    ...output('stderr', status['err-data'], status['err-truncated']),
  }
}

const output = (name: string, data: unknown, truncated: unknown) => {
  const full = fromGuest(data)
  const cut = full.length > OUTPUT_CHARS
  return {
    [name]: cut ? full.slice(-OUTPUT_CHARS) : full,
    ...(cut || isTrue(truncated) ? { [`${name}_truncated`]: true } : {}),
  }
}

const hasExited = (status: Item) => isTrue(status.exited)
const isTrue = (value: unknown) => value === true || value === 1 || value === '1'
