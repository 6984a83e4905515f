import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { createCertificate } from '../../../src/guest/certificate.ts'
import { writeIso } from '../../../src/guest/iso.ts'
import { encodeSpec } from '../../../src/guest/order-format.ts'
import { RUNNER } from '../../../src/guest/runner.ts'
import { buildSeed, callbackText, seedIso } from '../../../src/guest/seed.ts'
import { smbiosForSeed } from '../../../src/guest/smbios.ts'
import { has } from '../../support/has.ts'
import { readIso } from '../../support/iso-reader.ts'

const withImage = <T>(image: Buffer, use: (file: string) => T): T => {
  const dir = mkdtempSync(join(tmpdir(), 'iso-'))
  try {
    const file = join(dir, 'seed.iso')
    writeFileSync(file, image)
    return use(file)
  } finally {
    rmSync(dir, { recursive: true })
  }
}

const files = [
  { name: 'meta-data', content: Buffer.from('meta') },
  { name: 'user-data', content: Buffer.alloc(5000, 'u') },
  { name: 'empty', content: Buffer.alloc(0) },
]

describe('the image writer', () => {
  it('is read back as it was written, whatever the content', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 9000 }), { maxLength: 20 }), contents => {
        const named = contents.map((content, index) => ({ name: `file-${index}.x`, content }))
        const iso = readIso(writeIso('cidata', named))
        expect(iso?.label).toBe('cidata')
        expect(iso?.files.size).toBe(named.length)
        for (const { name, content } of named) expect(iso?.files.get(name)?.equals(content)).toBe(true)
      }),
      { numRuns: 50 },
    )
  })

  it.skipIf(!has('isoinfo'))('is understood by isoinfo, by its Joliet names and by the plain ones', () => {
    withImage(writeIso('cidata', files), file => {
      const about = execFileSync('isoinfo', ['-d', '-i', file]).toString()
      expect(about).toMatch(/Volume id: cidata/)
      expect(about).toMatch(/Joliet with UCS level 3/)
      const listed = execFileSync('isoinfo', ['-J', '-f', '-i', file]).toString()
      expect(listed.split('\n').filter(Boolean).sort()).toEqual(['/empty', '/meta-data', '/user-data'])
      expect(execFileSync('isoinfo', ['-J', '-i', file, '-x', '/user-data']).length).toBe(5000)
      expect(execFileSync('isoinfo', ['-i', file, '-x', '/META-DATA;1']).toString()).toBe('meta')
    })
  })

  it.skipIf(!has('xorriso'))('is understood by xorriso', () => {
    withImage(writeIso('cidata', files), file => {
      const toc = execFileSync('xorriso', ['-indev', file, '-find', '/'], {
        stdio: ['ignore', 'pipe', 'pipe'],
      }).toString()
      expect(toc).toMatch(/meta-data/i)
    })
  })

  it.skipIf(!has('blkid'))('has the label that cloud-init looks for', () => {
    withImage(writeIso('cidata', files), file => {
      expect(execFileSync('blkid', ['-p', '-o', 'value', '-s', 'LABEL', file]).toString().trim()).toBe(
        'cidata',
      )
    })
  })

  it.each([
    [[{ name: '../x', content: Buffer.alloc(0) }]],
    [
      [
        { name: 'a', content: Buffer.alloc(0) },
        { name: 'A', content: Buffer.alloc(0) },
      ],
    ],
  ])('refuses names that do not fit', bad => {
    expect(() => writeIso('cidata', bad)).toThrow()
  })

  it('knows what is no image', () => {
    expect(readIso(Buffer.alloc(100_000))).toBeUndefined()
    expect(readIso(Buffer.alloc(0))).toBeUndefined()
  })
})

describe('the seed', () => {
  const callback = { url: 'http://192.0.2.1:8765/', token: 'abcdefghijklmnop' }
  const seed = buildSeed({ instanceId: 'machine-1', hostname: 'job-1', callback })

  it('is YAML that means what was said', () => {
    expect(parse(seed.metaData)).toEqual({ 'instance-id': 'machine-1', 'local-hostname': 'job-1' })
    const config = parse(seed.userData)
    expect(seed.userData.startsWith('#cloud-config\n')).toBe(true)
    expect(config.runcmd).toEqual([
      ['/bin/sh', '-c', expect.stringContaining('/bin/sh /var/lib/deputy/runner')],
    ])
    expect(Buffer.from(config.write_files[0].content, 'base64').toString()).toBe(RUNNER)
    expect(Buffer.from(config.write_files[1].content, 'base64').toString()).toBe(
      'http://192.0.2.1:8765\nabcdefghijklmnop\n-\n-\n',
    )
    expect(config.write_files[1].permissions).toBe('0600')
  })

  it('is ASCII throughout, for every YAML reader', () => {
    for (const text of Object.values(seed)) expect(text).toMatch(/^[\n -~]*$/)
  })

  it('lets nothing into the keys', () => {
    expect(() => buildSeed({ instanceId: 'x', hostname: 'a\nruncmd: [x]' })).toThrow('no name')
    expect(() => callbackText({ url: 'http://x\nevil', token: 'abcdefghijklmnop' })).toThrow('one word')
    const hostile = buildSeed({ instanceId: '"}\nruncmd: [reboot]', hostname: 'a' })
    expect(Object.keys(parse(hostile.metaData))).toEqual(['instance-id', 'local-hostname'])
  })

  it('names the network device by its address, or leaves the choice to cloud-init', () => {
    const known = buildSeed({ instanceId: 'x', hostname: 'a', macAddress: 'BC:24:11:0A:0B:0C' })
    expect(parse(known.networkConfig)).toEqual({
      version: 1,
      config: [
        { type: 'physical', name: 'eth0', mac_address: 'bc:24:11:0a:0b:0c', subnets: [{ type: 'dhcp4' }] },
      ],
    })
    expect([...readIso(seedIso(known))!.files.keys()]).toContain('network-config')
  })

  it('goes onto an image, without a network that it does not know', () => {
    expect([...readIso(seedIso(seed))!.files.keys()].sort()).toEqual([
      'meta-data',
      'user-data',
      'vendor-data',
    ])
  })
})

describe('the SMBIOS value', () => {
  const UUID = '4c4c4544-0042-4810-8056-b4c04f395931'

  it('keeps the uuid and points cloud-init at the seed', () => {
    const value = smbiosForSeed(`uuid=${UUID}`, 'http://192.0.2.1:8765/seed/abc/')
    expect(value).toMatch(new RegExp(`^uuid=${UUID},base64=1,serial=`))
    const serial = /serial=([^,]+)/.exec(value)![1]!
    expect(Buffer.from(serial, 'base64').toString()).toBe('ds=nocloud-net;s=http://192.0.2.1:8765/seed/abc/')
  })

  it('replaces an old serial and encodes plain fields', () => {
    const value = smbiosForSeed(`uuid=${UUID},manufacturer=Acme,serial=OLD`, 'http://h/')
    expect(value).toContain('manufacturer=QWNtZQ==')
    expect(value).not.toContain('OLD')
    expect(smbiosForSeed(`uuid=${UUID},base64=1,manufacturer=QWNtZQ==`, 'http://h/')).toContain(
      'manufacturer=QWNtZQ==',
    )
  })

  it('refuses what would not fit', () => {
    expect(() => smbiosForSeed(`uuid=${UUID}`, `http://h/${'x'.repeat(400)}/`)).toThrow(
      expect.objectContaining({ code: 'too_large' }),
    )
    expect(() => smbiosForSeed(undefined, 'http://h/x')).toThrow('slash')
  })
})

describe('what the runner reads', () => {
  const spec = {
    jobId: 'j',
    argv: ['a'],
    env: {},
    secrets: {},
    timeoutSeconds: 1,
    graceSeconds: 1,
    heartbeatSeconds: 1,
    inputs: [],
    wantsFiles: false,
    continues: false,
    outlivesJob: false,
  }

  it('has a line for a value, and marked ones for the further lines of it, whatever the value', () => {
    const unit = fc.oneof(fc.constantFrom('\n', ' ', '+', '=', 'end'), fc.string({ unit: 'grapheme' }))
    const value = fc.array(unit).map(parts => parts.join(''))
    fc.assert(
      fc.property(fc.array(value), values => {
        const argv = values.map(value => value.replaceAll('\0', ''))
        const lines = encodeSpec({ ...spec, argv })
          .slice(0, -1)
          .split(/\n(?!\+)/)
        const args = lines.filter(line => line.startsWith('arg '))
        expect(args.map(line => decoded(line.slice(4)))).toEqual(
          argv.map(value => Buffer.from(value).toString()),
        )
        expect(lines.at(-1)).toBe('end')
      }),
    )
  })

  it('refuses names that a shell would execute', () => {
    for (const name of ['a b', 'a;reboot', '', '1a', 'a\nb'])
      expect(() => encodeSpec({ ...spec, env: { [name]: 'x' } })).toThrow('name')
    expect(() => encodeSpec({ ...spec, argv: ['\0'] })).toThrow('NUL')
  })
})

describe('certificates', () => {
  it('are good for the names they were made for, and signed by whom they say', () => {
    const ca = createCertificate({ commonName: 'ca', isCa: true })
    const leaf = createCertificate({
      commonName: 'pve1',
      names: ['pve1.example', '192.0.2.7', '2001:db8::7'],
      signer: ca,
      days: 10_000,
    })
    const parsed = new X509Certificate(leaf.cert)
    expect(parsed.fingerprint256).toBe(leaf.fingerprint)
    expect(parsed.verify(new X509Certificate(ca.cert).publicKey)).toBe(true)
    expect(parsed.checkHost('pve1.example')).toBe('pve1.example')
    expect(parsed.checkIP('192.0.2.7')).toBe('192.0.2.7')
    expect(parsed.checkIP('2001:db8::7')).toBe('2001:db8::7')
    expect(parsed.ca).toBe(false)
    expect(new X509Certificate(ca.cert).ca).toBe(true)
  })
})

const decoded = (word: string): string => {
  return word.startsWith('=') ? word.slice(1).replaceAll('\n+', '\n') : Buffer.from(word, 'base64').toString()
}
