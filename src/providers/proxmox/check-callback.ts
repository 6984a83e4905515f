import { connect, isIPv6 } from 'node:net'
import type { Check } from '../../ports.ts'
import type { CallbackServer } from './callback-server.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'

const NAME = 'callback'
const CONNECT_MS = 2000
const PROBE = 'not tried from a machine: deputy doctor --probe'

/** Checks the callback address as far as possible without a machine. */
export const checkCallback = async (
  provider: ProxmoxProviderOptions,
  callbackServer: CallbackServer,
): Promise<Check> => {
  if (provider.channel === 'agent')
    return { name: NAME, status: 'ok', message: 'machines report through their guest agent' }
  const { url, host } = await callbackServer.expected()
  const cluster = provider.proxmox.settings.endpoints[0]!.host
  if (isLoopback(host) && !isLoopback(cluster))
    return {
      name: NAME,
      status: 'failed',
      message: `machines cannot report to ${url}: inside a machine, this address is the machine itself`,
      fix: 'Set CALLBACK_HOST to an address of this computer that machines reach, then: deputy daemon restart',
    }
  const { port, host: own } = provider.callback
  // If this daemon does not listen on the port, no other program should.
  if (port !== 0 && !callbackServer.isOpen && (await answers(port, own)) && !callbackServer.isOpen)
    return {
      name: NAME,
      status: 'failed',
      message: `another program listens on port ${port}, where machines are to report`,
      fix: 'Set CALLBACK_PORT to a free port, then: deputy daemon restart',
    }
  return { name: NAME, status: 'ok', message: `machines report to ${url} (${PROBE})` }
}

const isLoopback = (host: string): boolean =>
  isIPv6(host) ? host === '::1' : /^127\.|^localhost$/.test(host)

const answers = (port: number, own: string): Promise<boolean> =>
  new Promise(resolve => {
    const host = own === '0.0.0.0' ? '127.0.0.1' : own === '::' ? '::1' : own
    const socket = connect({ port, host, timeout: CONNECT_MS })
    const done = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => done(true))
    socket.once('timeout', () => done(false))
    socket.once('error', () => done(false))
  })
