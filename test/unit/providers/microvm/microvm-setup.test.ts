import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseManifest } from '../../../../src/jobs/manifest.ts'
import { checkMicrovm } from '../../../../src/providers/microvm/check-microvm.ts'
import {
  findImage,
  listImages,
  removeImage,
  storeImage,
} from '../../../../src/providers/microvm/image-store.ts'
import { machineUid } from '../../../../src/providers/microvm/machine-directory.ts'
import { qemuArguments, sandboxedQemu } from '../../../../src/providers/microvm/qemu-command.ts'
import { fitsMicrovm } from '../../../../src/providers/microvm/unmet-microvm-requirement.ts'

let imagesDir: string
beforeEach(() => {
  imagesDir = mkdtempSync(join(tmpdir(), 'deputy-images-'))
})
afterEach(() => rmSync(imagesDir, { recursive: true }))

const makeImage = (name: string): void => {
  const from = join(imagesDir, 'NEW-1')
  mkdirSync(from, { mode: 0o700 })
  for (const file of ['vmlinux', 'initrd', 'root.squashfs'])
    writeFileSync(join(from, file), '12345', { mode: 0o600 })
  storeImage(imagesDir, { name, from, kernel: '6.12', contents: 'Debian' })
}

describe('the images of VMs', () => {
  it('are listed, replaced and removed by name', () => {
    expect(listImages(imagesDir)).toEqual([])
    makeImage('default')
    makeImage('default')
    makeImage('a')
    expect(listImages(imagesDir)).toMatchObject([
      { name: 'a', kernel: '6.12', bytes: 15 },
      { name: 'default', contents: 'Debian' },
    ])
    removeImage(imagesDir, 'a')
    expect(findImage(imagesDir, 'a')).toBeUndefined()
    expect(() => removeImage(imagesDir, 'a')).toThrow("There is no image 'a'")
    expect(() => findImage(imagesDir, '../x')).toThrow("Invalid image name '../x'")
  })

  it('can be read by the user that QEMU has', () => {
    makeImage('default')
    const { directory } = findImage(imagesDir, 'default')!
    expect(statSync(directory).mode & 0o777).toBe(0o755)
    expect(statSync(join(directory, 'root.squashfs')).mode & 0o777).toBe(0o644)
  })

  it('do not count while they are incomplete', () => {
    makeImage('default')
    rmSync(join(imagesDir, 'default', 'initrd'))
    expect(findImage(imagesDir, 'default')).toBeUndefined()
    expect(existsSync(join(imagesDir, 'default'))).toBe(true)
  })
})

describe('whether a VM on this computer can run a job', () => {
  const fits = (input: object) =>
    fitsMicrovm(parseManifest({ task: 'true', ...input }), { imagesDir, image: 'default' })

  it('needs an image, and says how to make it', () => {
    expect(fits({})).toEqual({
      ok: false,
      reason: "there is no VM image 'default'",
      hint: 'Make it: deputy microvm setup',
    })
    makeImage('default')
    expect(fits({})).toEqual({ ok: true })
    for (const input of [{ isolation: 'vm' }, { network: 'full' }, { network: ['example.com'] }])
      expect(fits(input)).toEqual({ ok: true })
  })

  it('refuses what it cannot give', () => {
    makeImage('default')
    for (const [input, reason] of [
      [{ vmTemplate: '9000' }, 'Proxmox VE'],
      [{ image: 'node:22' }, 'container'],
      [{ requires: { os: 'macos' } }, 'macos'],
      [{ requires: { arch: 'riscv64' } }, 'riscv64'],
      [{ requires: { node: 'n1' } }, "'n1'"],
    ] as const)
      expect(fits(input)).toMatchObject({ ok: false, reason: expect.stringContaining(reason) })
  })

  it('is what doctor tells, with the way to mend it', () => {
    const context = { imagesDir, image: 'default' }
    expect(checkMicrovm(context)).toMatchObject({
      ready: false,
      checks: [{ name: 'qemu' }, { name: 'image', status: 'failed', fix: 'deputy microvm setup' }],
    })
    makeImage('default')
    const { checks } = checkMicrovm(context)
    expect(checks[1]).toMatchObject({ name: 'image', status: 'ok' })
  })
})

describe('the command of a VM', () => {
  const size = { cpus: 2, memory: 512 * 2 ** 20, disk: 2 ** 30, processes: 100 }
  const args = qemuArguments({ machineId: 'm1', size, image: '/image', run: '/run' })

  it('gives it no network device, and limits on the command line of its kernel', () => {
    expect(args.join(' ')).not.toMatch(/-net|netdev|virtio-net|e1000/)
    expect(args).toContain('deputy-microvm-m1')
    expect(args[args.indexOf('-append') + 1]).toMatch(
      /deputy\.memory=536870912 deputy\.disk=1073741824 deputy\.processes=100$/,
    )
    expect(args[args.indexOf('-m') + 1]).toBe('672M')
  })

  it('has a file as memory where it is saved, and changes of its own to it where it starts from it', () => {
    const of = (memory: 'shared' | 'private') =>
      qemuArguments({ machineId: 'm1', size, memory, image: '/image', run: '/run' }).join(' ')
    expect(of('shared')).toContain(`size=${672 * 2 ** 20},mem-path=/proc/self/fd/3,share=on`)
    expect(of('shared')).not.toContain('-incoming')
    expect(of('private')).toContain('mem-path=/proc/self/fd/3,share=off')
    expect(of('private')).toContain('-incoming defer')
    expect(args.join(' ')).not.toMatch(/mem-path|monitor/)
  })

  it('runs QEMU without a network, without capabilities, and not as root', () => {
    const request = { qemu: '/usr/bin/qemu', imageDirectory: '/i', machineDirectory: '/m' }
    const own = sandboxedQemu({ ...request, uid: undefined }, args)
    expect(own.slice(0, 2)).toEqual(['bwrap', '--unshare-all'])
    expect(own.join(' ')).toContain('--cap-drop ALL')
    expect(own.join(' ')).toContain('--ro-bind /i /image')
    expect(own.join(' ')).not.toContain('/dev/kvm')
    const dropped = sandboxedQemu({ ...request, uid: 1_800_000_001 }, args)
    expect(dropped[0]).toBe('unshare')
    expect(dropped.slice(8, 12)).toEqual(['1800000001', '/m', '/i', 'bwrap'])
  })
})

describe.skipIf(process.getuid?.() !== 0)('the user id of a VM of a root daemon', () => {
  it('is one of its own, wherever there is room for it', () => {
    const all = '0 0 4294967295'
    expect(machineUid('m1', all)).not.toBe(machineUid('m2', all))
    expect(machineUid('m1', all)).toBeGreaterThanOrEqual(1_800_000_000)
    expect(machineUid('m1', all)).toBeLessThan(1_890_000_000)
    expect(machineUid('m1', '0 100000 65536')).toBeGreaterThanOrEqual(61_200)
    expect(machineUid('m1', '0 100000 65536')).toBeLessThan(61_500)
  })
})
