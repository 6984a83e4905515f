import { connect, type PeerCertificate } from 'node:tls'
import { AppError } from '../../jobs/errors.ts'
import { visible } from '../../jobs/visible-text.ts'
import { type Endpoint, parseEndpoint } from '../../proxmox/endpoints.ts'
import { parseFingerprint } from '../../proxmox/tls-settings.ts'
import { trustHost } from '../../proxmox/trusted-hosts.ts'
import type { Context } from '../context.ts'
import { confirm } from '../terminal/confirm.ts'

const PORT = 8006
const CONNECT_MS = 10_000

/** Shows the certificate of a host and, when the user agrees, pins it. `expected` is the user's agreement on the command line. */
export const trustCertificate = async (
  context: Context,
  host: string,
  expected: string | undefined,
): Promise<number> => {
  const endpoint = parseEndpoint(host, Number(context.env.PROXMOX_PORT) || PORT)
  const name = `${endpoint.host}:${endpoint.port}`
  const certificate = await readCertificate(endpoint, name)
  const seen = certificate.fingerprint256
  await context.err.write(
    [
      `Certificate of ${name}`,
      `  subject      ${certificate.subject?.CN ?? '(none)'}`,
      `  issuer       ${certificate.issuer?.CN ?? '(none)'}`,
      `  valid until  ${certificate.valid_to}`,
      `  SHA-256      ${seen}`,
      'Compare it with the output of "pvenode cert info" on the node.',
    ]
      .map(line => `${visible(line)}\n`)
      .join(''),
  )
  if (expected === undefined && !process.stdin.isTTY)
    throw new AppError('denied', 'Not trusted: there is no terminal to confirm on.', {
      hint: `deputy proxmox trust ${name} --fingerprint ${seen}`,
    })
  if (expected !== undefined && parseFingerprint(expected) !== seen)
    throw new AppError('denied', `The fingerprint of ${name} is not ${parseFingerprint(expected)}.`, {
      hint: 'Someone may be between this computer and the host. Compare the certificate on the node itself.',
    })
  if (expected === undefined && !(await confirm('Trust it?'))) return context.print('Not trusted.\n')
  trustHost(context.home.trustedHosts, name, seen)
  const strict = context.env.PROXMOX_SSL_MODE?.toLowerCase() === 'strict'
  return context.print(
    `Trusted ${name}.${strict ? ' It counts only where PROXMOX_SSL_MODE is unset or verify.' : ''}\n`,
  )
}

const readCertificate = ({ host, port }: Endpoint, name: string): Promise<PeerCertificate> =>
  new Promise((resolve, reject) => {
    const fail = (why: string): void => {
      socket.destroy()
      reject(
        new AppError('unavailable', `Cannot read the certificate of ${name}: ${why}.`, {
          hint: 'Check the name and the port of the host: deputy proxmox trust HOST:8006',
        }),
      )
    }
    // No secret is sent: the connection only shows the certificate.
    const socket = connect({ host, port, rejectUnauthorized: false, timeout: CONNECT_MS })
    socket.once('timeout', () => fail('it does not answer'))
    socket.once('error', error => fail(error.message))
    socket.once('secureConnect', () => {
      const certificate = socket.getPeerCertificate()
      socket.destroy()
      resolve(certificate)
    })
  })
