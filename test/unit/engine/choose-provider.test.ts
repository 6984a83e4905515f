import { describe, expect, it } from 'vitest'
import { chooseProvider } from '../../../src/engine/choose-provider.ts'
import { AppError } from '../../../src/jobs/errors.ts'
import { parseManifest } from '../../../src/jobs/manifest.ts'
import type { Provider } from '../../../src/ports.ts'
import { misconfiguredProxmox } from '../../../src/providers/proxmox/misconfigured-provider.ts'

const choose = (manifest: Record<string, unknown>, wanted: string): AppError => {
  const proxmox = misconfiguredProxmox(
    new AppError('invalid', 'PROXMOX_SSL_MODE is "foo".', { hint: 'Take strict or verify.' }),
  )
  try {
    chooseProvider(parseManifest({ task: 'true', ...manifest }), wanted, {
      order: ['proxmox'],
      providers: new Map([['proxmox', proxmox]]),
      readiness: () => undefined,
    })
  } catch (error) {
    return error as AppError
  }
  throw new Error('a runtime was found')
}

describe('a job that no runtime can take', () => {
  it('reports what is wrong with the settings of the named runtime, and the fix', () => {
    const { message, hint } = choose({}, 'proxmox')
    expect(message).toBe(`The runtime 'proxmox' cannot run this job: PROXMOX_SSL_MODE is "foo".`)
    expect(hint).toBe('Take strict or verify. Then: deputy daemon restart')
  })

  it.each([
    [{}, 'deputy doctor'],
    [{ requires: { os: 'macos' } }, 'deputy nodes add'],
    [{ requires: { node: 'nosuch' } }, 'deputy nodes list'],
  ])('%j is sent to those who know: %s', (manifest, command) => {
    expect(choose(manifest, 'auto').hint).toContain(command)
  })
})

describe('a job with isolation: vm', () => {
  const provider = (name: string, ownKernel: boolean): Provider => ({
    ...misconfiguredProxmox(new AppError('invalid', 'x')),
    ...{ name, ownKernel, fits: () => ({ ok: true }) },
  })
  const pick = (manifest: Record<string, unknown>, wanted: string, names: readonly string[]): string =>
    chooseProvider(parseManifest({ task: 'true', ...manifest }), wanted, {
      order: names,
      providers: new Map(names.map(name => [name, provider(name, name === 'proxmox')])),
      readiness: () => undefined,
    }).provider.name

  it('gets the first runtime whose machines have a kernel of their own', () => {
    expect(pick({}, 'auto', ['sandbox', 'proxmox'])).toBe('sandbox')
    expect(pick({ isolation: 'vm' }, 'auto', ['sandbox', 'proxmox'])).toBe('proxmox')
    expect(pick({ isolation: 'vm' }, 'proxmox', ['sandbox', 'proxmox'])).toBe('proxmox')
  })

  it.each(['auto', 'sandbox'])('is refused where none has: %s', wanted => {
    expect(() => pick({ isolation: 'vm' }, wanted, ['sandbox'])).toThrow(/share a kernel/)
  })
})
