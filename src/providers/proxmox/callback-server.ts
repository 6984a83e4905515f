import { type GuestListener, startGuestListener } from '../../guest/listener.ts'
import { GUEST_LIMITS } from '../../guest/rate-limiter.ts'
import type { Seed } from '../../guest/seed.ts'
import { AppError } from '../../jobs/errors.ts'
import { serveAgentTransport } from './agent-transport.ts'
import { type Address, callbackAddress } from './callback-address.ts'
import { createAgentLink } from './guest-agent.ts'
import type { GuestSessions } from './guest-sessions.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import type { VmRef } from './vm-ref.ts'

/** After a restart, machines are restored within this time; until then unknown tokens get 503 instead of 401. */
const MEMORY_MS = 180_000

/** Everything machines connect to: the guest listener, seeds over HTTP, and the agent transport without a network. */
export const createCallbackServer = (provider: ProxmoxProviderOptions, sessions: GuestSessions) => {
  const { proxmox, log, callback } = provider
  const now = () => proxmox.clock.now()
  const seeds = new Map<string, Seed>()
  let outer: Promise<GuestListener> | undefined
  let inner: Promise<GuestListener> | undefined
  let openedAt = now()

  const common = {
    machine: sessions.machine,
    egress: sessions.egress,
    limits: { ...GUEST_LIMITS, ...provider.limits },
    mayBeUnknown: () => now() - openedAt < MEMORY_MS,
    onError: (error: unknown) => log.debug({ err: error }, 'a request of a machine failed'),
    ...(provider.onCall && { onCall: provider.onCall }),
  }

  const open = (host: string): Promise<GuestListener> =>
    startGuestListener({
      ...common,
      host,
      port: callback.port,
      ...(callback.tls && { tls: callback.tls }),
      seed: name => seeds.get(name),
    }).catch(error => {
      // The address may belong to a router in front of this computer; then listen on all addresses.
      if ((error as NodeJS.ErrnoException).code === 'EADDRNOTAVAIL' && host !== '0.0.0.0')
        return open('0.0.0.0')
      throw error
    })

  /** Opens the listener with the first machine. */
  const network = (): Promise<GuestListener> => {
    if (outer === undefined) openedAt = now()
    outer ??= open(callback.host).catch(cause => {
      outer = undefined
      throw cannotListen(callback, cause)
    })
    return outer
  }

  /** The same routes on loopback, for requests that come through the guest agent. */
  const loopback = (): Promise<GuestListener> => {
    inner ??= startGuestListener({ ...common, host: '127.0.0.1', port: 0 })
    return inner
  }

  const transports = createAgentTransports(provider, async () => (await loopback()).port)

  /** The callback address, without starting the listener. */
  const expected = (port = callback.port): Promise<Address> =>
    callbackAddress(callback, port, proxmox.settings.endpoints[0]!.host)

  return {
    expected,
    get isOpen() {
      return outer !== undefined
    },
    /** Resolves when the listener is open. */
    async ready(): Promise<void> {
      await (provider.channel === 'agent' ? loopback() : network())
    },
    async address(): Promise<Address> {
      const { port } = await network()
      return expected(port)
    },
    publish: (name: string, seed: Seed): void => void seeds.set(name, seed),
    unpublish: (name: string): void => void seeds.delete(name),
    startAgentTransport: transports.start,
    moved: transports.moved,
    leave(machineId: string): void {
      sessions.drop(machineId)
      transports.end(machineId)
    },
    /** Closes the network listener while there are no machines, to reduce the attack surface. */
    async closeWhenIdle(): Promise<void> {
      if (sessions.size > 0 || outer === undefined) return
      const closing = outer
      outer = undefined
      await (await closing).close()
    },
    async close(): Promise<void> {
      transports.close()
      await (await outer)?.close()
      await (await inner)?.close()
    },
  }
}

export type CallbackServer = ReturnType<typeof createCallbackServer>

/** The transports of machines that report through their guest agent. */
const createAgentTransports = (
  { proxmox, log, channel }: ProxmoxProviderOptions,
  loopbackPort: () => Promise<number>,
) => {
  const transports = new Map<string, { ending: AbortController; at: { node: string; vmid: number } }>()
  const end = (machineId: string): void => {
    transports.get(machineId)?.ending.abort()
    transports.delete(machineId)
  }
  return {
    start(machineId: string, at: VmRef): void {
      if (channel !== 'agent' || transports.has(machineId)) return
      const ending = new AbortController()
      const transport = { ending, at: { ...at } }
      transports.set(machineId, transport)
      const agent = createAgentLink(proxmox, transport.at)
      void loopbackPort().then(port =>
        serveAgentTransport({ agent, clock: proxmox.clock, log, port, signal: ending.signal }),
      )
    },
    moved(machineId: string, node: string): void {
      const transport = transports.get(machineId)
      if (transport) transport.at.node = node
    },
    end,
    close: (): void => [...transports.keys()].forEach(end),
  }
}

const cannotListen = ({ host, port }: ProxmoxProviderOptions['callback'], cause: unknown): AppError =>
  new AppError(
    'unavailable',
    `The guest listener cannot listen on ${host}:${port}: ${(cause as Error).message}`,
    {
      hint: 'Set CALLBACK_PORT to a free port, or stop the program that has it.',
      cause,
    },
  )
