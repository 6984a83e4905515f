import { readFile } from 'node:fs/promises'
import * as tls from 'node:tls'

/** The CA certificates of the operating system. Older Node versions cannot query them, so known files are read. */
export const osCertificates = async (): Promise<string[]> => {
  const { getCACertificates } = tls as { getCACertificates?: (type: 'system') => string[] }
  if (getCACertificates) return getCACertificates('system')
  for (const file of [process.env.SSL_CERT_FILE, ...BUNDLES]) {
    const pem = file && (await readFile(file, 'utf8').catch(() => undefined))
    if (pem) return [pem]
  }
  return []
}

const BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]
