import type { Manifest } from '../../jobs/manifest.ts'
import type { CreateRequest } from '../../ports.ts'
import type { CallbackServer } from './callback-server.ts'
import type { GuestSessions } from './guest-sessions.ts'
import type { Provisioner } from './provision-vm.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import { detailsOf, type Known } from './vm-details.ts'
import { type VmSpec, vmSpecFor } from './vm-spec.ts'

export interface WarmMachineOptions {
  readonly provider: ProxmoxProviderOptions
  readonly sessions: GuestSessions
  readonly callbackServer: CallbackServer
  readonly provisioner: Provisioner
}

/** An idle machine polls for work more often than this. */
const SILENT_MS = 60_000
const LISTEN_MS = 3000

/** The template whose warm machines are large enough for the job; undefined if they are too small. */
export const warmTemplateFor = (manifest: Manifest, provider: ProxmoxProviderOptions): string | undefined => {
  const wanted = vmSpecFor(manifest, provider)
  const offered = vmSpecFor(undefined, provider)
  const suits =
    wanted.cores <= offered.cores && wanted.memory <= offered.memory && manifest.resources?.disk === undefined
  return suits ? wanted.template : undefined
}

/**
 * Whether an existing machine can run the job. A warm machine must be alive, made from the right template and large
 * enough; a kept machine always qualifies. The firewall of a warm machine is opened here.
 */
export const canReuseMachine = async (
  { provider, sessions, callbackServer, provisioner }: WarmMachineOptions,
  { machine, manifest, remember, signal }: CreateRequest,
  wanted: VmSpec,
): Promise<boolean> => {
  const details = detailsOf(machine)
  if (!details.ready || details.tokenHash === undefined) return false
  await callbackServer.ready()
  const at = { node: details.node!, vmid: details.vmid! }
  const session = sessions.add(machine.id, details.tokenHash)
  callbackServer.startAgentTransport(machine.id, at)
  if (manifest?.machine !== undefined) return true
  if (!isEnough(details, wanted) || manifest?.resources?.disk !== undefined) return false
  if (session.lastContact === undefined) await sessions.change(machine.id, LISTEN_MS, signal)
  if (provider.proxmox.clock.now() - (session.lastContact ?? 0) > SILENT_MS) return false
  if (details.network !== wanted.network) {
    await provisioner.protect(at, wanted.network, signal)
    await remember({ ...details, network: wanted.network })
  }
  return true
}

const isEnough = (details: Known, wanted: VmSpec): boolean =>
  details.templateName === wanted.template &&
  (details.cores ?? 0) >= wanted.cores &&
  (details.memory ?? 0) >= wanted.memory
