import { pinOf } from '../../guest/certificate.ts'
import { AppError, toAppError } from '../../jobs/errors.ts'
import type { Check, CreateRequest } from '../../ports.ts'
import type { CallbackServer } from './callback-server.ts'
import { createAgentLink } from './guest-agent.ts'
import { type NodeReaches, probeNode } from './node-reach.ts'
import type { Phase } from './phase-timer.ts'
import { isTimeout, type Provisioner } from './provision-vm.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import type { Known } from './vm-details.ts'
import type { VmRef } from './vm-ref.ts'
import { vmSpecFor } from './vm-spec.ts'

export interface ProbeOptions {
  readonly provider: ProxmoxProviderOptions
  readonly callbackServer: CallbackServer
  readonly provisioner: Provisioner
  readonly reaches: NodeReaches
}

const NAME = 'callback'
/** For diagnosing a machine that did not report. */
const LOOK_MS = 30_000

/**
 * Boots a machine as jobs get it, waits for its callback, and tries from inside what it must not reach. The caller always
 * destroys the machine.
 */
export const probeMachine = async (options: ProbeOptions, request: CreateRequest): Promise<Check[]> => {
  const { provider, callbackServer, provisioner, reaches } = options
  const began = performance.now()
  let phase = 'template' as Phase
  let known: Known = {}
  const remember: CreateRequest['remember'] = details => {
    known = details
    return request.remember(details)
  }
  const where = provider.channel === 'agent' ? 'its guest agent' : (await callbackServer.address()).url
  try {
    await provisioner.make({ ...request, remember }, vmSpecFor(undefined, provider), next => {
      phase = next
    })
    const took = Object.entries(known.phases ?? {}).map(([name, ms]) => `${name} ${seconds(ms)}`)
    const message = `VM ${known.vmid} on ${known.node} was heard of through ${where} after ${seconds(performance.now() - began)} (${took.join(', ')})`
    const at = { node: known.node!, vmid: known.vmid! }
    return [{ name: NAME, status: 'ok', message }, await probeNode(provider.proxmox, at, reaches)]
  } catch (thrown) {
    if (request.signal.aborted && !isTimeout(request.signal.reason)) throw thrown
    if (phase === 'boot' && known.vmid !== undefined)
      return [await unheard(options, { node: known.node!, vmid: known.vmid }, { where, error: thrown })]
    const { message, hint } = toAppError(thrown)
    const fix = hint === undefined ? {} : { fix: hint }
    return [
      { name: NAME, status: 'failed', message: `not probed: it failed at ${phase}: ${message}`, ...fix },
    ]
  }
}

interface Silence {
  readonly where: string
  readonly error: unknown
}

/** The machine runs but did not report: asks its guest agent which part fails. */
const unheard = async (
  { provider, callbackServer }: ProbeOptions,
  at: VmRef,
  { where, error }: Silence,
): Promise<Check> => {
  const failed = (message: string, fix: string): Check => ({ name: NAME, status: 'failed', message, fix })
  const vm = `VM ${at.vmid}`
  if (error instanceof AppError && error.code === 'unavailable')
    return failed(`it failed at boot: ${error.message}`, error.hint ?? '')
  const found = await lookInside(provider, callbackServer, at)
  if (found === undefined)
    return failed(
      `${vm} was started, but was heard of neither at ${where} nor through its guest agent: it may not have booted`,
      `Look at the console of a VM from template ${provider.template}: it must boot, and run cloud-init, curl and qemu-guest-agent. If it does, ${reachable(provider)}`,
    )
  const { code, words } = found
  if (code === 127)
    return failed(`${vm} has booted, but has no curl to call ${where}`, 'Install curl in the template.')
  if (code === 0)
    return failed(
      `${vm} has booted and reaches ${where}, but its runner did not call: cloud-init has not started it`,
      'In the VM: cloud-init status --long. In the template: cloud-init clean, and NoCloud in datasource_list.',
    )
  return failed(`${vm} has booted, but cannot reach ${where}: ${words}`, fixFor(code, provider))
}

const REACH = `command -v curl >/dev/null || exit 127
exec curl -sS -o /dev/null -m 10 "$@"`

/** Calls the listener from inside the machine. Returns the result of curl; undefined if the agent does not answer. */
const lookInside = async (
  { proxmox, channel, callback: { tls } }: ProxmoxProviderOptions,
  callbackServer: CallbackServer,
  at: VmRef,
): Promise<{ code: number; words: string } | undefined> => {
  if (channel === 'agent') return undefined
  const agent = createAgentLink(proxmox, at)
  const signal = AbortSignal.timeout(LOOK_MS)
  try {
    if (!(await agent.isUp(signal))) return undefined
    const { url, resolve } = await callbackServer.address()
    const known = resolve === undefined ? [] : ['--resolve', resolve]
    const pinned = tls === undefined ? [] : ['--insecure', '--pinnedpubkey', pinOf(tls.cert)]
    const argv = ['/bin/sh', '-c', REACH, 'sh', ...known, ...pinned, `${url}/health`]
    const { code, err } = await agent.exec(argv, signal)
    const words = err.toString('utf8').trim().split('\n').at(-1) || `curl ended with ${code}`
    return { code, words }
  } catch {
    // Without the privilege to use the agent nothing more can be found out.
    return undefined
  }
}

/** By the exit status of curl. */
const fixFor = (code: number, provider: ProxmoxProviderOptions): string => {
  if (code === 35 || code === 60 || code === 90)
    return `What answers there is not our listener: set CALLBACK_URL and CALLBACK_TLS to what is in front of it, then: deputy daemon restart`
  return `Open the way: ${reachable(provider)}`
}

const reachable = ({ callback: { host, port } }: ProxmoxProviderOptions): string =>
  `let machines reach TCP port ${port} of this computer (firewall of this computer, of the datacenter, routes), or set CALLBACK_HOST (now ${host}) and CALLBACK_PORT (now ${port}) to what they reach. Where they reach nothing: PROXMOX_CHANNEL=agent. Then: deputy daemon restart`

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
