import { rootCertificates } from 'node:tls'
import { expect, it } from 'vitest'
import { loadTlsTrust } from '../../../src/proxmox/tls.ts'
import type { TlsSettings } from '../../../src/proxmox/tls-settings.ts'

const settings = (more: Partial<TlsSettings> = {}): TlsSettings => ({
  mode: 'strict',
  fingerprints: [],
  ...more,
})
const contextOf = async (more?: Partial<TlsSettings>) => (await loadTlsTrust(settings(more))).context

it('parses the public CAs once, however many clients there are', async () => {
  const [first, second] = await Promise.all([contextOf(), contextOf({ mode: 'verify' })])
  expect(second).toBe(first)
  expect(await contextOf({ fingerprints: ['AA'] })).toBe(first)
})

it('shares nothing with a client that was given a CA, a fingerprint or no trust at all', async () => {
  const pem = rootCertificates[0]!
  const shared = await contextOf()
  const others = await Promise.all([
    contextOf({ ca: { pem } }),
    contextOf({ mode: 'verify', ca: { pem } }),
    contextOf({ mode: 'verify', fingerprints: ['AA'] }),
    contextOf({ mode: 'insecure' }),
  ])
  expect(new Set([shared, ...others]).size).toBe(5)
})
