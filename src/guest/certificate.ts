import {
  createHash,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { isIP } from 'node:net'
import {
  bits,
  bool,
  integer,
  ipBytes,
  octets,
  oid,
  sequence,
  set,
  tagged,
  tlv,
  utcTime,
  utf8,
} from './der.ts'

export interface Certificate {
  readonly cert: string
  readonly key: string
  /** SHA-256, upper case with colons. */
  readonly fingerprint: string
}

export interface CertificateOptions {
  readonly commonName: string
  /** Host names and addresses the certificate is good for. */
  readonly names?: readonly string[]
  readonly days?: number
  /** Makes a certificate that may sign others. */
  readonly isCa?: boolean
  readonly signer?: Certificate & { readonly commonName: string }
  readonly now?: Date
}

const ECDSA_SHA256 = '1.2.840.10045.4.3.2'

/** An X.509 certificate for a key of its own, signed by itself or by a CA made here; no openssl needed. */
export const createCertificate = (options: CertificateOptions): Certificate & { commonName: string } => {
  const { commonName, signer, days = 365, now = new Date() } = options
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const body = sequence(
    tagged(0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([0x01]), randomBytes(15)])),
    algorithm,
    name(signer?.commonName ?? commonName),
    sequence(
      utcTime(new Date(now.getTime() - 86_400_000)),
      utcTime(new Date(now.getTime() + days * 86_400_000)),
    ),
    name(commonName),
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(3, sequence(...extensions(options))),
  )
  const signature = sign('sha256', body, signer?.key ?? privateKey)
  const der = sequence(body, algorithm, bits(signature))
  return {
    commonName,
    cert: pem('CERTIFICATE', der),
    key: exportKey(privateKey),
    fingerprint: fingerprintOf(der),
  }
}

/** The public key of a certificate as curl's `--pinnedpubkey` takes it. */
export const pinOf = (cert: string): string => {
  const key = new X509Certificate(cert).publicKey.export({ type: 'spki', format: 'der' })
  return `sha256//${createHash('sha256').update(key).digest('base64')}`
}

const algorithm = sequence(oid(ECDSA_SHA256))

const name = (commonName: string): Buffer => sequence(set(sequence(oid('2.5.4.3'), utf8(commonName))))

const extensions = ({ isCa = false, names = [] }: CertificateOptions): Buffer[] => [
  extension('2.5.29.19', isCa ? sequence(bool(true)) : sequence(), true),
  ...(names.length > 0 ? [extension('2.5.29.17', sequence(...names.map(alternative)))] : []),
]

const extension = (id: string, value: Buffer, critical = false): Buffer =>
  critical ? sequence(oid(id), bool(true), octets(value)) : sequence(oid(id), octets(value))

const alternative = (text: string): Buffer =>
  isIP(text) === 0 ? tlv(0x82, Buffer.from(text, 'ascii')) : tlv(0x87, ipBytes(text))

const exportKey = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString()

const pem = (label: string, der: Buffer): string =>
  `-----BEGIN ${label}-----\n${der
    .toString('base64')
    .match(/.{1,64}/g)!
    .join('\n')}\n-----END ${label}-----\n`

const fingerprintOf = (der: Buffer): string =>
  createHash('sha256').update(der).digest('hex').toUpperCase().match(/../g)!.join(':')
