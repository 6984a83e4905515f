import { connect, type Socket } from 'node:net'

export interface Stream {
  readonly socket: Socket
  readonly version: string
  /** Bytes that arrived together with the handshake response. */
  readonly rest: Buffer
}

const HANDSHAKE_MS = 10_000
const MAX_HEADER_BYTES = 16_384

/**
 * Opens a connection to the daemon and upgrades it to MCP. The HTTP request is written by hand, because loading
 * node:http would double the start time of the bridge.
 */
export const openStream = (path: string, headers: Readonly<Record<string, string>>): Promise<Stream> =>
  new Promise((resolve, reject) => {
    const socket = connect(path)
    let received = Buffer.alloc(0)
    const fail = (error: Error) => {
      socket.destroy()
      reject(error)
    }
    const ended = () => fail(new Error('the daemon closed the connection during the handshake'))
    socket.setTimeout(HANDSHAKE_MS, () => fail(new Error('the daemon did not answer the handshake')))
    socket.once('error', fail)
    socket.once('close', ended)
    socket.once('connect', () => socket.write(request(headers)))
    socket.on('data', function read(chunk: Buffer) {
      received = Buffer.concat([received, chunk])
      const end = received.indexOf('\r\n\r\n')
      if (end === -1 && received.length < MAX_HEADER_BYTES) return
      socket.off('data', read)
      socket.pause()
      const head = received.subarray(0, Math.max(end, 0)).toString('latin1')
      if (!/^HTTP\/1\.1 101\b/.test(head))
        return fail(new Error(`the daemon refused the connection: ${head.split('\r\n')[0]}`))
      socket.setTimeout(0)
      socket.off('error', fail)
      socket.off('close', ended)
      const version = /^x-deputy-version: *(.*)$/im.exec(head)?.[1]?.trim() ?? ''
      resolve({ socket, version, rest: received.subarray(end + 4) })
    })
  })

const request = (headers: Readonly<Record<string, string>>): string =>
  [
    'GET /mcp/stdio HTTP/1.1',
    'host: deputy',
    'connection: upgrade',
    'upgrade: deputy-mcp',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value.replace(/[^\x20-\x7e]/g, '')}`),
    '\r\n',
  ].join('\r\n')
