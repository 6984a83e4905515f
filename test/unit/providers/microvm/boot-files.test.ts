import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { cpioArchive } from '../../../../src/providers/microvm/cpio-archive.ts'
import { dependenciesOf, resolveModules } from '../../../../src/providers/microvm/kernel-modules.ts'
import { unpackKernel } from '../../../../src/providers/microvm/unpack-kernel.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'deputy-boot-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const module_ = (depends: string): Buffer => Buffer.from(`ELF\0license=GPL\0depends=${depends}\0name=x\0`)

describe('an archive for the kernel', () => {
  it('has a header of 110 characters, the name and the content, each padded to four bytes', () => {
    const archive = cpioArchive([
      { path: 'dev' },
      { path: 'init', content: 'echo', executable: true },
      { path: 'notes', content: 'abcde' },
    ])
    expect(archive.length % 4).toBe(0)
    const text = archive.toString('latin1')
    const fields = (at: number): number[] =>
      Array.from({ length: 13 }, (_, index) =>
        Number.parseInt(text.slice(at + 6 + index * 8, at + 14 + index * 8), 16),
      )
    expect(text.slice(0, 6)).toBe('070701')
    expect(fields(0)[1]).toBe(0o040755)
    const init = text.indexOf('070701', 6)
    expect(init % 4).toBe(0)
    expect(fields(init)[1]).toBe(0o100755)
    expect(fields(init)[6]).toBe(4)
    expect(text.slice(init + 110, init + 115)).toBe('init\0')
    const notes = text.indexOf('070701', init + 6)
    expect(fields(notes)[1]).toBe(0o100644)
    expect(text).toContain('TRAILER!!!')
  })
})

describe('the modules of an initrd', () => {
  it('come after those that they need, once each, without those that are built in', () => {
    const put = (path: string, content: Buffer) => {
      mkdirSync(join(directory, 'kernel', path, '..'), { recursive: true })
      writeFileSync(join(directory, 'kernel', path), content)
    }
    put('drivers/block/virtio_blk.ko', module_('virtio,virtio-ring'))
    put('drivers/virtio/virtio-ring.ko.gz', gzipSync(module_('virtio')))
    put('drivers/virtio/virtio.ko', module_(''))
    put('fs/overlay.ko', module_('built'))
    writeFileSync(join(directory, 'modules.builtin'), 'kernel/lib/built.ko\n')
    const modules = resolveModules(directory, ['virtio_blk', 'overlay', 'built', 'virtio'])
    expect(modules.map(({ name }) => name)).toEqual(['virtio', 'virtio_ring', 'virtio_blk', 'overlay'])
    expect(modules[1]!.content).toEqual(module_('virtio'))
  })

  it('are named when the kernel lacks one', () => {
    mkdirSync(join(directory, 'kernel'))
    expect(() => resolveModules(directory, ['squashfs'])).toThrow("has no module 'squashfs'")
  })

  it('need nothing when they do not say so', () => {
    expect(dependenciesOf(Buffer.from('no such section'))).toEqual([])
    expect(dependenciesOf(module_(''))).toEqual([])
  })
})

/** As a boot loader sees a kernel: a header that says where the compressed one is. */
const bzImage = (packed: Buffer): Buffer => {
  const sectors = 3
  const offset = 64
  const image = Buffer.alloc((sectors + 1) * 512 + offset + packed.length)
  image.writeUInt8(sectors, 0x1f1)
  image.write('HdrS', 0x202, 'latin1')
  image.writeUInt32LE(offset, 0x248)
  image.writeUInt32LE(packed.length, 0x24c)
  packed.copy(image, (sectors + 1) * 512 + offset)
  return image
}

describe('the kernel inside a boot image', () => {
  const kernel = Buffer.concat([Buffer.from('\x7fELF', 'latin1'), Buffer.alloc(5000, 'kernel')])

  it('is unpacked where the header says', () => {
    expect(unpackKernel(bzImage(gzipSync(kernel)))).toEqual(kernel)
    expect(unpackKernel(kernel)).toBe(kernel)
  })

  it('may be compressed by another program, followed by its size', () => {
    const size = Buffer.alloc(4)
    size.writeUInt32LE(kernel.length)
    let packed: Buffer
    try {
      packed = execFileSync('xz', ['-c'], { input: kernel })
    } catch {
      return // Not installed here.
    }
    expect(unpackKernel(bzImage(Buffer.concat([packed, size])))).toEqual(kernel)
  })

  it('is refused when it is something else', () => {
    expect(() => unpackKernel(Buffer.alloc(4096))).toThrow('no Linux kernel')
    expect(() => unpackKernel(bzImage(Buffer.from('unknown!')))).toThrow('cannot be unpacked')
  })
})
