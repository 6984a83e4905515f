import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { withoutToken } from '../../../src/proxmox/credentials.ts'
import { isConfigured, parseSettings } from '../../../src/proxmox/proxmox-settings.ts'
import { thrownError } from '../../support/thrown-error.ts'

const TOKEN = { PROXMOX_USER: 'deputy@pve', PROXMOX_TOKEN_NAME: 'jobs', PROXMOX_TOKEN_VALUE: 'aaaa-bbbb' }
const HOST = { PROXMOX_HOST: 'pve1.lan' }
const FINGERPRINT = Array.from({ length: 32 }, (_, i) => i.toString(16).padStart(2, '0').toUpperCase()).join(
  ':',
)

const failure = (env: Record<string, string>) => thrownError(() => parseSettings(env))

describe('hosts', () => {
  const origins = (host: string, port?: string) =>
    parseSettings({ ...TOKEN, PROXMOX_HOST: host, ...(port ? { PROXMOX_PORT: port } : {}) }).endpoints.map(
      e => e.origin,
    )

  it('uses port 8006 unless told otherwise', () => {
    expect(origins('pve1')).toEqual(['https://pve1:8006'])
    expect(origins('pve1', '443')).toEqual(['https://pve1:443'])
    expect(origins('pve1:8007', '443')).toEqual(['https://pve1:8007'])
  })

  it('takes several hosts, once each, in order', () => {
    expect(origins(' pve2 , pve1:8006,pve2')).toEqual(['https://pve2:8006', 'https://pve1:8006'])
  })

  it('takes what people paste: addresses of the web page, of the API, IPv6', () => {
    expect(origins('https://pve1:8006/')).toEqual(['https://pve1:8006'])
    expect(origins('https://pve1/api2/json')).toEqual(['https://pve1:8006'])
    expect(origins('[2001:db8::1]:9000,2001:db8::2')).toEqual([
      'https://[2001:db8::1]:9000',
      'https://[2001:db8::2]:8006',
    ])
  })

  it.each(['', ' , ', 'a b', 'pve1/evil', 'user@pve1', 'pve1:0', 'pve1:99999', 'http://pve1', '-pve'])(
    'refuses "%s" with a hint',
    host => {
      const error = failure({ ...TOKEN, PROXMOX_HOST: host })
      expect(error.code).toBe('invalid')
      expect(error.hint).toBeTruthy()
    },
  )

  it('knows whether anything was configured at all', () => {
    expect(isConfigured({})).toBe(false)
    expect(isConfigured({ PROXMOX_HOST: '  ' })).toBe(false)
    expect(isConfigured(HOST)).toBe(true)
  })
})

describe('credentials', () => {
  const credentials = (env: Record<string, string>) => parseSettings({ ...HOST, ...env }).credentials

  it.each([
    ['name and value', TOKEN],
    ['a full id', { PROXMOX_TOKEN_ID: 'deputy@pve!jobs', PROXMOX_TOKEN_SECRET: 'aaaa-bbbb' }],
    [
      'a full id under the other name',
      { PROXMOX_API_TOKEN_ID: 'deputy@pve!jobs', PROXMOX_API_TOKEN_SECRET: 'aaaa-bbbb' },
    ],
    [
      'a short id',
      { PROXMOX_USER: 'deputy@pve', PROXMOX_API_TOKEN_ID: 'jobs', PROXMOX_API_TOKEN_SECRET: 'aaaa-bbbb' },
    ],
    ['the token beside the user', { PROXMOX_USER: 'deputy@pve!jobs', PROXMOX_TOKEN_VALUE: 'aaaa-bbbb' }],
    ['the whole header', { PROXMOX_TOKEN_VALUE: 'PVEAPIToken=deputy@pve!jobs=aaaa-bbbb' }],
  ])('reads %s', (_, env) => {
    const found = credentials(env)
    expect(found).toMatchObject({
      kind: 'token',
      id: 'deputy@pve!jobs',
      user: 'deputy@pve',
      tokenName: 'jobs',
    })
    expect(found.kind === 'token' && found.secret()).toBe('aaaa-bbbb')
  })

  it('prefers a token over a password', () => {
    expect(credentials({ ...TOKEN, PROXMOX_PASSWORD: 'x' }).kind).toBe('token')
  })

  it('prefers the person over the token where only a person may act', () => {
    const env = withoutToken({ ...TOKEN, PROXMOX_USER: 'root@pam!jobs', PROXMOX_PASSWORD: 'x' })
    expect(parseSettings({ ...HOST, ...env }).credentials).toMatchObject({ kind: 'ticket', user: 'root@pam' })
    expect(withoutToken(TOKEN)).toEqual(TOKEN)
  })

  it('takes users whose name is a mail address', () => {
    expect(credentials({ ...TOKEN, PROXMOX_USER: 'me@example.org@ldap' })).toMatchObject({
      id: 'me@example.org@ldap!jobs',
    })
  })

  it('belong to root@pam when no user is set', () => {
    expect(credentials({ PROXMOX_TOKEN_NAME: 'jobs', PROXMOX_TOKEN_VALUE: 'x' })).toMatchObject({
      id: 'root@pam!jobs',
    })
    expect(credentials({ PROXMOX_PASSWORD: 'x' })).toMatchObject({ kind: 'ticket', user: 'root@pam' })
  })

  it('keeps a password as it is, with its spaces', () => {
    const found = credentials({ PROXMOX_USER: 'root@pam', PROXMOX_PASSWORD: ' se cret ' })
    expect(found.kind === 'ticket' && found.password()).toBe(' se cret ')
  })

  it('never shows a secret when settings are printed or serialised', () => {
    const settings = parseSettings({ ...HOST, ...TOKEN })
    expect(inspect(settings, { depth: 9 }) + JSON.stringify(settings)).not.toContain('aaaa-bbbb')
  })

  it.each([
    [{}, 'No Proxmox VE credentials'],
    [{ PROXMOX_TOKEN_VALUE: 'x' }, 'no token name'],
    [{ PROXMOX_USER: 'a@pve', PROXMOX_TOKEN_NAME: 'jobs' }, 'has no value'],
    [{ PROXMOX_USER: 'root', PROXMOX_PASSWORD: 'x' }, '"root"'],
    [{ PROXMOX_USER: 'a@pve', PROXMOX_TOKEN_ID: 'b@pve!jobs', PROXMOX_TOKEN_VALUE: 'x' }, '"b@pve"'],
    [{ PROXMOX_USER: 'a@pve', PROXMOX_TOKEN_NAME: 'j s', PROXMOX_TOKEN_VALUE: 'x' }, '"j s"'],
    [{ PROXMOX_USER: 'a@pve', PROXMOX_TOKEN_NAME: 'jobs', PROXMOX_TOKEN_VALUE: 'x\ny' }, 'white space'],
  ] as [Record<string, string>, string][])('refuses %o and says why', (env, words) => {
    const error = failure({ ...HOST, ...env })
    expect(error.code).toBe('invalid')
    expect(error.message).toContain(words)
    expect(error.hint).toBeTruthy()
  })
})

describe('TLS', () => {
  const tls = (env: Record<string, string>) => parseSettings({ ...HOST, ...TOKEN, ...env }).tls

  it('is strict unless a CA or a fingerprint is given', () => {
    expect(tls({})).toEqual({ mode: 'strict', fingerprints: [] })
    expect(tls({ PROXMOX_SSL_CA_CERT: '/ca.pem' })).toMatchObject({ mode: 'verify', ca: { file: '/ca.pem' } })
    expect(tls({ PROXMOX_SSL_FINGERPRINT: FINGERPRINT })).toEqual({
      mode: 'verify',
      fingerprints: [FINGERPRINT],
    })
  })

  it('reads fingerprints in every common spelling', () => {
    const bare = FINGERPRINT.replaceAll(':', '').toLowerCase()
    expect(tls({ PROXMOX_SSL_FINGERPRINT: `${bare}, sha256:${FINGERPRINT}` }).fingerprints).toEqual([
      FINGERPRINT,
      FINGERPRINT,
    ])
  })

  it('lets PROXMOX_VERIFY_SSL switch off what PROXMOX_SSL_MODE does not decide', () => {
    expect(tls({ PROXMOX_VERIFY_SSL: 'false' }).mode).toBe('insecure')
    expect(tls({ PROXMOX_VERIFY_SSL: 'true' }).mode).toBe('strict')
    expect(tls({ PROXMOX_VERIFY_SSL: 'false', PROXMOX_SSL_MODE: 'strict' }).mode).toBe('strict')
  })

  it.each([
    { PROXMOX_SSL_MODE: 'lax' },
    { PROXMOX_VERIFY_SSL: 'maybe' },
    { PROXMOX_SSL_FINGERPRINT: 'AB:CD' },
    { PROXMOX_TIMEOUT: 'soon' },
  ])('refuses %o', env => {
    expect(failure({ ...HOST, ...TOKEN, ...env }).hint).toBeTruthy()
  })
})
