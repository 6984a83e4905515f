import { setTimeout as sleep } from 'node:timers/promises'
import { check } from '../acl.ts'
import { die, PveError } from '../errors.ts'
import type { GuestAgent } from '../guests/driver.ts'
import { type Context, NODE, type Operation, VMID } from '../operation.ts'
import { agentRight } from '../roles.ts'
import type { ParamTable } from '../schema.ts'
import { vmOf } from '../vm.ts'

const MAX_OUTPUT = 16 * 1024 ** 2

type Right = Parameters<typeof agentRight>[1]

const call = (
  method: 'GET' | 'POST',
  name: string,
  right: Right,
  run: (agent: GuestAgent, context: Context) => Promise<unknown>,
  params: ParamTable = {},
): Operation => ({
  method,
  path: `/nodes/{node}/qemu/{vmid}/agent/${name}`,
  name,
  description: `Does ${name} with the agent inside a virtual machine.`,
  params: { node: NODE, vmid: VMID, ...params },
  permission: { user: 'all' },
  onNode: true,
  returns: 'object',
  run: async context => {
    const major = Number(context.state.version.version.split('.')[0])
    check(context.state, context.auth, `/vms/${context.params.vmid}`, agentRight(major, right), true)
    return run(await agentOf(context), context)
  },
})

export const agentOperations: readonly Operation[] = [
  call('POST', 'ping', 'Audit', async () => ({ result: {} })),
  call('GET', 'info', 'Audit', async () => ({ result: { version: '10.0.0' } })),
  call('GET', 'get-osinfo', 'Audit', async () => ({ result: { id: 'debian', name: 'Debian GNU/Linux' } })),
  call('GET', 'network-get-interfaces', 'Audit', async () => ({
    result: [
      { name: 'lo', 'ip-addresses': [{ 'ip-address': '127.0.0.1', 'ip-address-type': 'ipv4', prefix: 8 }] },
    ],
  })),
  call(
    'POST',
    'exec',
    'Unrestricted',
    async (agent, context) => {
      const argv = context.params.command as string[]
      const input = context.params['input-data']
      await wedgeOnWide(context, [...argv, String(input ?? '')])
      const bytes = input === undefined ? undefined : Buffer.from(String(input), 'latin1')
      return { pid: await agent.exec(argv, bytes).catch(() => loseWorker(context)) }
    },
    { command: { type: 'array' }, 'input-data': { type: 'string', optional: true, maxLength: 65_536 } },
  ),
  call(
    'GET',
    'exec-status',
    'Unrestricted',
    async (agent, context) => {
      const status =
        (await agent.execStatus(Number(context.params.pid))) ?? die('Agent error: PID ld does not exist')
      if (!status.exited) return { exited: 0 }
      return {
        exited: 1,
        ...(status.signal === undefined ? { exitcode: status.exitcode ?? 0 } : { signal: status.signal }),
        ...printed('out', status.out),
        ...printed('err', status.err),
      }
    },
    { pid: { type: 'integer' } },
  ),
  call(
    'GET',
    'file-read',
    'FileRead',
    async (agent, context) => {
      await wedgeOnWide(context, [String(context.params.file)])
      const content = await agent
        .readFile(String(context.params.file))
        .catch(error => die(`Agent error: ${(error as Error).message}`))
      const most = 16 * 1024 ** 2
      return {
        content: content.subarray(0, most).toString('latin1'),
        'bytes-read': Math.min(content.length, most),
        ...(content.length > most ? { truncated: 1 } : {}),
      }
    },
    { file: { type: 'string' } },
  ),
  call(
    'POST',
    'file-write',
    'FileWrite',
    async (agent, context) => {
      const { file, content, encode = true } = context.params
      await wedgeOnWide(context, [String(file)])
      const bytes = encode ? encoded(String(content)) : Buffer.from(String(content), 'base64')
      await agent
        .writeFile(String(file), bytes)
        .catch(error => die(`Agent error: ${(error as Error).message}`))
      return null
    },
    {
      file: { type: 'string' },
      content: { type: 'string', maxLength: 61_440 },
      encode: { type: 'boolean', optional: true },
    },
  ),
]

/** Bytes as latin1, which the caller must turn back, and no more of them than the agent keeps. */
const printed = (name: 'out' | 'err', bytes: Buffer) => ({
  ...(bytes.length > 0 ? { [`${name}-data`]: bytes.subarray(0, MAX_OUTPUT).toString('latin1') } : {}),
  ...(bytes.length > MAX_OUTPUT ? { [`${name}-truncated`]: 1 } : {}),
})

/** Each call first pings the agent, which takes its time when nobody answers. */
const agentOf = async (context: Context): Promise<GuestAgent> => {
  const vm = vmOf(context)
  if (!/^(1|enabled=1)/.test(vm.config.agent ?? '')) die('No QEMU guest agent configured')
  if (vm.status !== 'running') die(`VM ${vm.vmid} is not running`)
  const agent = vm.wedged ? undefined : vm.guest?.agent()
  if (agent) return agent
  await sleep(context.state.timing.agentPingMs)
  return die('QEMU guest agent is not running')
}

/** One character beyond latin1 and the agent hears nothing more until the guest is reset. */
const wedgeOnWide = async (context: Context, texts: readonly string[]): Promise<void> => {
  if (texts.every(text => !/[^\0-\xff]/.test(text))) return
  vmOf(context).wedged = true
  await sleep(context.state.timing.agentCommandMs)
  die("VM agent command 'guest-exec' failed - got timeout")
}

/** The agent's words about a missing program have curly quotes, of which the worker dies. */
const loseWorker = async (context: Context): Promise<never> => {
  await sleep(context.state.timing.agentCommandMs)
  throw new PveError(596, 'Broken pipe')
}

const encoded = (content: string): Buffer => {
  if (/[^\0-\xff]/.test(content)) die('Wide character in subroutine entry')
  return Buffer.from(content, 'latin1')
}
