import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'

/** Time for the client to read the refusal and close. After that, the proxy closes the connection. */
const LINGER_MS = 5000

/** Writes an HTTP response to a raw socket and closes it. */
export const refuseConnection = (
  client: Duplex,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): number => {
  const body = `${text}.\n`
  const lines = {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
    ...headers,
  }
  const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`)
  client.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head.join('')}\r\n${body}`)
  client.resume()
  const timer = setTimeout(() => client.destroy(), LINGER_MS)
  client.once('close', () => clearTimeout(timer))
  return status
}
