import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { callbackSchema, proxmoxProviderSchema } from '../../../../src/config/proxmox-section.ts'
import { parseManifest } from '../../../../src/jobs/manifest.ts'
import type { SinkBatch } from '../../../../src/ports.ts'
import { callbackAddress, numericUrl } from '../../../../src/providers/proxmox/callback-address.ts'
import { planFirewall } from '../../../../src/providers/proxmox/firewall.ts'
import {
  describe as describeMachine,
  identityOf,
  nameOf,
  ownership,
  seedMachine,
  seedNameOf,
} from '../../../../src/providers/proxmox/identity.ts'
import { createOutputReceiver } from '../../../../src/providers/proxmox/output-receiver.ts'
import { fitsProxmox } from '../../../../src/providers/proxmox/unmet-vm-requirement.ts'
import { validateSettings } from '../../../../src/providers/proxmox/validate-settings.ts'
import { createVmids } from '../../../../src/providers/proxmox/vmids.ts'

const MACHINE = '018f0000-0000-7000-8000-000000000001'
const IDENTITY = {
  machineId: MACHINE,
  owner: 'abc123',
  createdAt: 1_700_000_000_000,
  tokenHash: 'a'.repeat(64),
}
const RANGE = { first: 100_000, last: 100_099 }

describe('who a machine belongs to', () => {
  const config = { name: nameOf(MACHINE), description: describeMachine(IDENTITY) }
  const ours = { owner: 'abc123', pool: 'jobs', vmids: RANGE }

  it('is read back from its description, also when people write around it', () => {
    expect(identityOf(describeMachine(IDENTITY))).toEqual(IDENTITY)
    expect(identityOf(`note\n${describeMachine(IDENTITY)}\nmore`)).toEqual(IDENTITY)
    for (const text of [undefined, '', 'deputy:machine=x', describeMachine(IDENTITY).replace(MACHINE, 'zz')])
      expect(identityOf(text)).toBeUndefined()
  })

  it('needs every proof at once', () => {
    const seen = { vmid: 100_000, pool: 'jobs', config }
    const tags = 'production;deputy;deputy-abc123'
    expect(ownership(seen, ours)).toBe('ours')
    expect(ownership(seen, { ...ours, machineId: MACHINE })).toBe('ours')
    expect(ownership({ ...seen, config: { ...config, tags } }, { ...ours, tagged: true })).toBe('ours')
    const altered = [
      { ...seen, vmid: 99_999 },
      { ...seen, pool: undefined },
      { ...seen, pool: 'production' },
      { ...seen, config: { ...config, name: 'web-server' } },
      { ...seen, config: { name: config.name } },
    ]
    for (const one of altered) expect(ownership(one, { ...ours, machineId: MACHINE })).toBe('altered')
    expect(ownership(seen, { ...ours, tagged: true })).toBe('altered')
    expect(ownership(seen, { ...ours, owner: 'other' })).toBe('foreign')
    expect(ownership(seen, { ...ours, machineId: 'another' })).toBe('foreign')
    expect(ownership({ ...seen, config: { name: 'web-server' } }, ours)).toBe('foreign')
  })

  it('is in the name of its seed image', () => {
    const volid = `seeds:iso/${seedNameOf('abc123', MACHINE)}`
    expect(seedMachine(volid, 'abc123')).toBe(MACHINE)
    expect(seedMachine(volid, 'other')).toBeUndefined()
    expect(seedMachine('seeds:iso/debian.iso', 'abc123')).toBeUndefined()
  })
})

describe('ids', () => {
  it('are never given twice while they are leased, nor when they are known', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 100_000, max: 100_019 }), { maxLength: 15 }), known => {
        const vmids = createVmids({ first: 100_000, last: 100_019 })
        const given = new Set<number>()
        for (let i = known.length; i < 20; i++) {
          const id = vmids.take(new Set(known))
          expect(known).not.toContain(id)
          expect(given.has(id)).toBe(false)
          given.add(id)
        }
        expect(() => vmids.take(new Set(known))).toThrow(/in use|is free/)
        const [one] = given
        if (one !== undefined) {
          vmids.release(one)
          expect(vmids.take(new Set(known))).toBe(one)
        }
      }),
    )
  })

  it('of machines that an earlier daemon made are not given away, seen or not', () => {
    const vmids = createVmids({ first: 100_000, last: 100_002 })
    vmids.hold([100_000, 100_002, 5])
    expect(vmids.take(new Set([100_002]))).toBe(100_001)
    expect(() => vmids.take(new Set())).toThrow('All ids from 100000 to 100002 are in use.')
    vmids.release(100_002)
    expect(vmids.take(new Set())).toBe(100_002)
  })
})

describe('the firewall', () => {
  const callback = { host: '192.0.2.1', port: 8765 }

  it('lets a job without network reach the callback and nothing else', () => {
    const plan = planFirewall({ network: 'none', callback, privateAddresses: false })
    expect(plan.policyOut).toBe('DROP')
    expect(plan.rules).toEqual([
      expect.objectContaining({ action: 'ACCEPT', proto: 'tcp', dest: '192.0.2.1', dport: '8765' }),
    ])
  })

  it('lets a job with network out, but not to its neighbours', () => {
    const plan = planFirewall({ network: 'full', callback, privateAddresses: false })
    expect(plan.policyOut).toBe('ACCEPT')
    expect(plan.rules[0]?.dest).toBe('192.0.2.1')
    expect(plan.rules.filter(rule => rule.action === 'DROP').map(rule => rule.dest)).toEqual(
      expect.arrayContaining(['10.0.0.0/8', '192.168.0.0/16', 'fe80::/10']),
    )
    expect(
      planFirewall({ network: 'full', callback, privateAddresses: true }).rules.some(
        rule => rule.action === 'DROP',
      ),
    ).toBe(false)
  })
})

describe('the callback address', () => {
  it('is never localhost by accident', async () => {
    const { url, host } = await callbackAddress({ host: '0.0.0.0', port: 8765 }, 8765, '192.0.2.10')
    expect(url).toMatch(/^http:\/\/.+:8765$/)
    expect(host).not.toBe('0.0.0.0')
  })

  it('is what the user says', async () => {
    expect(await callbackAddress({ host: '10.9.8.7', port: 1 }, 8765, 'x')).toEqual({
      url: 'http://10.9.8.7:8765',
      host: '10.9.8.7',
      port: 8765,
    })
    expect(
      await callbackAddress({ host: '0.0.0.0', port: 1, url: 'https://[2001:db8::1]:444/base/' }, 8765, 'x'),
    ).toMatchObject({ url: 'https://[2001:db8::1]:444/base', host: '2001:db8::1', port: 444 })
    expect(await callbackAddress({ host: 'localhost', port: 1 }, 8765, 'x')).toMatchObject({
      url: 'http://localhost:8765',
      resolve: expect.stringMatching(/^localhost:8765:(127\.0\.0\.1|\[::1\])$/),
    })
  })

  it('is known to machines without a question for its name', () => {
    expect(numericUrl({ url: 'http://callback.example:80/base', host: '192.0.2.1' })).toBe(
      'http://192.0.2.1/base',
    )
    expect(numericUrl({ url: 'http://x:8765', host: '2001:db8::1' })).toBe('http://[2001:db8::1]:8765')
  })
})

describe('settings that cannot work together', () => {
  const config = proxmoxProviderSchema.parse({})
  const callback = callbackSchema.parse({})

  it.each([
    [{ firstVmid: 500, lastVmid: 400 }, {}, '400'],
    [{ injection: 'iso' }, {}, 'storage'],
    [{ injection: 'http', channel: 'agent' }, {}, 'guest agent'],
    [{ injection: 'http' }, { tls: true }, 'HTTPS'],
    [{ injection: 'http' }, { url: 'https://callback.example' }, 'HTTPS'],
  ] as const)('%j with %j are refused', (proxmox, more, words) => {
    expect(() => validateSettings({ ...config, ...proxmox }, { ...callback, ...more })).toThrow(words)
  })

  it('are told from those that can', () => {
    validateSettings(config, callback)
    validateSettings({ ...config, injection: 'iso', seedStorage: 'seeds' }, { ...callback, tls: true })
  })
})

describe('what fits', () => {
  const settings = { channel: 'callback' as const, callback: { host: '10.0.0.1', port: 8765 } }

  it('a list of domains does where machines have a way to the proxy', () => {
    const listed = parseManifest({ task: 'x', network: ['example.org'] })
    expect(fitsProxmox(listed, settings)).toEqual({ ok: true })
    const nat = { ...settings.callback, url: 'http://203.0.113.5:9000' }
    expect(fitsProxmox(listed, { ...settings, callback: nat })).toEqual({ ok: true })
    for (const [more, words] of [
      [{ channel: 'agent' as const }, 'guest agent'],
      [
        { callback: { ...settings.callback, url: 'https://deputy.example.org/' } },
        'https://deputy.example.org/',
      ],
      [{ callback: { ...settings.callback, url: 'http://proxy.example.org/deputy' } }, 'directly'],
    ] as const)
      expect(fitsProxmox(listed, { ...settings, ...more })).toMatchObject({
        ok: false,
        reason: expect.stringContaining(words),
      })
    expect(fitsProxmox(parseManifest({ task: 'x' }), { ...settings, channel: 'agent' })).toEqual({ ok: true })
  })

  it.each([
    [{ requires: { os: 'darwin' } }, 'Linux'],
    [{ requires: { arch: 'arm64' } }, 'x86_64'],
    [{ platform: 'linux/arm64' }, "'platform' needs a container"],
  ])('%j does not, and the reason says why', (manifest, words) => {
    expect(fitsProxmox(parseManifest({ task: 'x', ...manifest }), settings)).toMatchObject({
      ok: false,
      reason: expect.stringContaining(words),
    })
  })

  it('an ordinary job does', () => {
    expect(
      fitsProxmox(
        parseManifest({ task: 'x', network: 'full', requires: { os: 'Linux', arch: 'x86_64' } }),
        settings,
      ),
    ).toEqual({ ok: true })
  })
})

describe('the outputReceiver', () => {
  const open = (position = 0, secrets = {}) => {
    const batches: SinkBatch[] = []
    const sink = {
      position,
      started: async () => {},
      heartbeat: () => {},
      write: async (batch: SinkBatch) => void batches.push(batch),
    }
    const outputReceiver = createOutputReceiver({
      sink,
      outputBytes: 0,
      read: () => ({ secrets, format: 'text' }),
      keep: () => undefined,
      now: () => 1,
    })
    const text = () =>
      batches
        .flatMap(batch => batch.chunks)
        .map(chunk => Buffer.from(chunk.data).toString())
        .join('')
    return { outputReceiver, batches, text }
  }

  it('takes each byte once, however the frames come', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ minLength: 1 }),
        fc.array(fc.tuple(fc.nat(40), fc.integer({ min: 1, max: 20 }))),
        async (seed, frames) => {
          const log = Buffer.from(seed.repeat(40).replace(/[^\x20-\x7e]/g, 'x'))
          const { outputReceiver, text } = open()
          for (const [back, length] of frames) {
            const offset = Math.max(0, outputReceiver.position - back)
            await outputReceiver.take({
              stream: 'stdout',
              offset,
              data: log.subarray(offset, offset + length),
            })
          }
          await outputReceiver.end()
          expect(text()).toBe(log.subarray(0, outputReceiver.position).toString())
        },
      ),
    )
  })

  it('takes two copies of a frame that come at once as one', async () => {
    const { outputReceiver, text } = open()
    const frame = { stream: 'stdout', offset: 0, data: Buffer.from('hello') } as const
    expect(await Promise.all([outputReceiver.take(frame), outputReceiver.take(frame)])).toEqual([5, 5])
    expect(text()).toBe('hello')
  })

  it('hides a secret that is cut by two frames', async () => {
    const { outputReceiver, text } = open(0, { S: 'correct-horse' })
    await outputReceiver.take({ stream: 'stdout', offset: 0, data: Buffer.from('a correct-') })
    await outputReceiver.take({ stream: 'stdout', offset: 10, data: Buffer.from('horse b') })
    await outputReceiver.end()
    expect(text()).toBe('a [redacted] b')
  })
})
