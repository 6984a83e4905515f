import { X509Certificate } from 'node:crypto'
import {
  createSecureContext,
  type PeerCertificate,
  rootCertificates,
  type SecureContext,
  type TLSSocket,
} from 'node:tls'
import { readRegularFile } from '../files/regular-file.ts'
import { AppError } from '../jobs/errors.ts'
import { osCertificates } from './os-certificates.ts'
import type { ProxmoxDetails } from './proxmox-errors.ts'
import type { TlsSettings } from './tls-settings.ts'
import { trustedFingerprints } from './trusted-hosts.ts'

/** The trusted CAs, and the check of a connected socket. */
export interface TlsTrust {
  /** Created once per client; for the public CAs once per process. */
  readonly context: SecureContext
  /** Returns undefined if the peer is trusted, otherwise the error. */
  check(socket: TLSSocket, host: string): AppError | undefined
}

export const loadTlsTrust = async (tls: TlsSettings): Promise<TlsTrust> => {
  if (tls.mode === 'insecure') return { context: createSecureContext({ ca: [] }), check: () => undefined }
  const given = tls.ca === undefined ? [] : [await readCa(tls.ca)]
  // With a configured CA or fingerprint, public CAs are not trusted: in this mode they could sign any name.
  const onlyTheirs = tls.mode === 'verify' && (given.length > 0 || tls.fingerprints.length > 0)
  return {
    context: onlyTheirs
      ? createSecureContext({ ca: given })
      : given.length > 0
        ? createSecureContext({ ca: [...(await publicCas()), ...given] })
        : await publicContext(),
    check: (socket, host) => checkPeer(socket, host, tls, given.length > 0),
  }
}

const publicCas = async (): Promise<string[]> => [...rootCertificates, ...(await osCertificates())]

let shared: Promise<SecureContext> | undefined

/** Shared, because parsing a few hundred CAs takes longer than a request to a node and blocks the event loop. */
const publicContext = (): Promise<SecureContext> => {
  shared ??= publicCas()
    .then(ca => createSecureContext({ ca }))
    .catch((error: unknown) => {
      shared = undefined
      throw error
    })
  return shared
}

const checkPeer = (
  socket: TLSSocket,
  host: string,
  tls: TlsSettings,
  ownCa: boolean,
): AppError | undefined => {
  const seen = socket.getPeerCertificate().fingerprint256
  const pinned = tls.fingerprints.includes(seen)
  const chain = chainProblem(socket)
  const onlyTheName = chain === 'ERR_TLS_CERT_ALTNAME_INVALID'
  const chained = chain === undefined || (onlyTheName && ownCa && tls.mode === 'verify')
  if (tls.mode === 'strict') {
    if (chained && (tls.fingerprints.length === 0 || pinned)) return undefined
  } else if (pinned || (chained && tls.fingerprints.length === 0) || (chained && ownCa)) {
    return undefined
  }
  if (tls.trustFile !== undefined && trustedFingerprints(tls.trustFile, host).includes(seen)) return undefined
  return untrusted(host, seen, chain, socket.getPeerCertificate(), tls)
}

const chainProblem = (socket: TLSSocket): string | undefined => {
  if (socket.authorized) return undefined
  const error = socket.authorizationError as (Error & { code?: string }) | string | undefined
  if (error === undefined || error === null) return 'UNKNOWN'
  return typeof error === 'string' ? error : (error.code ?? error.message)
}

const untrusted = (
  host: string,
  seen: string,
  chain: string | undefined,
  certificate: PeerCertificate,
  tls: TlsSettings,
): AppError => {
  const why =
    tls.fingerprints.length > 0
      ? 'its fingerprint is not the pinned one'
      : chain === 'ERR_TLS_CERT_ALTNAME_INVALID'
        ? `it is not valid for this name, only for ${certificate.subjectaltname ?? 'another'}`
        : chain === 'CERT_HAS_EXPIRED'
          ? `it expired on ${certificate.valid_to}`
          : `no trusted CA signed it (${chain})`
  return new AppError(
    'unavailable',
    `The certificate of ${host} is not trusted: ${why}; its SHA-256 fingerprint is ${seen}.`,
    {
      hint:
        tls.trustFile === undefined
          ? `Compare it with "pvenode cert info" on the node; if it is the same: PROXMOX_SSL_MODE=verify PROXMOX_SSL_FINGERPRINT=${seen}`
          : `Compare it with "pvenode cert info" on the node; if it is the same: deputy proxmox trust ${host} --fingerprint ${seen}`,
      retryable: false,
      details: { source: 'proxmox', kind: 'tls', fingerprint: seen } satisfies ProxmoxDetails,
    },
  )
}

const readCa = async (ca: NonNullable<TlsSettings['ca']>): Promise<string> => {
  const pem = 'pem' in ca ? ca.pem : await readCaFile(ca.file)
  try {
    new X509Certificate(pem)
    return pem
  } catch (cause) {
    throw new AppError(
      'invalid',
      `PROXMOX_SSL_CA_CERT ${'file' in ca ? `"${ca.file}" ` : ''}is not a PEM certificate.`,
      {
        hint: 'The CA of a cluster is /etc/pve/pve-root-ca.pem on every node.',
        cause,
      },
    )
  }
}

const readCaFile = async (file: string): Promise<string> => {
  try {
    return (await readRegularFile(file, { maxBytes: 1024 * 1024, follow: true })).toString('utf8')
  } catch (cause) {
    throw new AppError('invalid', `Cannot read PROXMOX_SSL_CA_CERT "${file}".`, {
      hint: 'Copy /etc/pve/pve-root-ca.pem from a node and set its path.',
      cause,
    })
  }
}
