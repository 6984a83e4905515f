import { createSocket } from 'node:dgram'
import { isIP } from 'node:net'

/** The local address that the system would use to reach a peer. Connecting a UDP socket sends nothing. */
export const localAddressTowards = (peer: string, signal: AbortSignal): Promise<string | undefined> =>
  new Promise(resolve => {
    const socket = createSocket(isIP(peer) === 6 ? 'udp6' : 'udp4')
    let settled = false
    const done = (address: string | undefined): void => {
      if (settled) return
      settled = true
      signal.removeEventListener('abort', onAbort)
      socket.close()
      resolve(address)
    }
    const onAbort = (): void => done(undefined)
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    socket.once('error', () => done(undefined))
    socket.connect(9, peer, () => done(socket.address().address))
  })
