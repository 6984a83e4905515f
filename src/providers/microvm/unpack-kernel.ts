import { execFileSync } from 'node:child_process'
import { gunzipSync } from 'node:zlib'
import { AppError } from '../../jobs/errors.ts'

const MAX_BYTES = 512 * 1024 * 1024

const FORMATS: readonly { magic: readonly number[]; unpack(packed: Buffer): Buffer }[] = [
  { magic: [0x1f, 0x8b], unpack: packed => gunzipSync(packed) },
  { magic: [0x28, 0xb5, 0x2f, 0xfd], unpack: packed => pipe('zstd', packed) },
  { magic: [0xfd, 0x37, 0x7a, 0x58, 0x5a], unpack: packed => pipe('xz', packed) },
  { magic: [0x02, 0x21, 0x4c, 0x18], unpack: packed => pipe('lz4', packed) },
]

const formatOf = (bytes: Buffer) =>
  FORMATS.find(({ magic }) => magic.every((byte, index) => bytes[index] === byte))

/** A kernel module as the kernel loads it. */
export const unpackModule = (bytes: Buffer): Buffer => formatOf(bytes)?.unpack(bytes) ?? bytes

const ELF = Buffer.from('\x7fELF', 'latin1')

/**
 * The kernel inside a bzImage, an ELF file: an emulated processor takes seconds to unpack it at boot. The header of a
 * bzImage tells where it is (Documentation/arch/x86/boot.rst).
 */
export const unpackKernel = (image: Buffer): Buffer => {
  if (image.subarray(0, 4).equals(ELF)) return image
  if (image.length < 0x260 || image.toString('latin1', 0x202, 0x206) !== 'HdrS')
    throw new AppError('invalid', 'The file is no Linux kernel for x86-64.')
  const start = (image.readUInt8(0x1f1) + 1) * 512 + image.readUInt32LE(0x248)
  const packed = image.subarray(start, start + image.readUInt32LE(0x24c))
  const format = formatOf(packed)
  // The last 4 bytes are the size of the kernel, which gzip has itself.
  const kernel = format?.unpack(format.magic[0] === 0x1f ? packed : packed.subarray(0, -4))
  if (kernel === undefined || !kernel.subarray(0, 4).equals(ELF))
    throw new AppError('unsupported', 'The kernel is compressed in a way that cannot be unpacked.')
  return kernel
}

const pipe = (program: string, input: Buffer): Buffer => {
  try {
    return execFileSync(program, ['-dcq'], { input, maxBuffer: MAX_BYTES, stdio: ['pipe', 'pipe', 'pipe'] })
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ENOENT'
      ? new AppError('unsupported', `The kernel is compressed with ${program}, which is not installed.`, {
          hint: `Install it: apt install ${program === 'xz' ? 'xz-utils' : program}`,
        })
      : error
  }
}
