import { AppError } from '../jobs/errors.ts'

export interface IsoFile {
  /** Flat: letters, digits, dot, dash and underscore. */
  readonly name: string
  readonly content: Uint8Array
}

const SECTOR = 2048
const PRIMARY_ROOT = 23
const JOLIET_ROOT = 24
const FIRST_FILE = 25
/** Small images confuse some readers that look ahead. */
const MIN_SECTORS = 64
const MAX_FILES = 24

/**
 * An ISO-9660 image with Joliet names and files in one directory: what a NoCloud seed needs, and no more.
 * The label is as given; cloud-init looks for `cidata`.
 */
export const writeIso = (label: string, files: readonly IsoFile[], at = new Date()): Buffer => {
  check(label, files)
  const placed = place([...files].sort((a, b) => (a.name < b.name ? -1 : 1)))
  const total = Math.max(MIN_SECTORS, placed.end)
  const image = Buffer.alloc(total * SECTOR)
  const volume = { label, total, at }
  descriptor(volume, 'primary').copy(image, 16 * SECTOR)
  descriptor(volume, 'joliet').copy(image, 17 * SECTOR)
  terminator().copy(image, 18 * SECTOR)
  pathTable(PRIMARY_ROOT, 'little').copy(image, 19 * SECTOR)
  pathTable(PRIMARY_ROOT, 'big').copy(image, 20 * SECTOR)
  pathTable(JOLIET_ROOT, 'little').copy(image, 21 * SECTOR)
  pathTable(JOLIET_ROOT, 'big').copy(image, 22 * SECTOR)
  directory(PRIMARY_ROOT, placed.files, primaryName, at).copy(image, PRIMARY_ROOT * SECTOR)
  directory(JOLIET_ROOT, placed.files, jolietName, at).copy(image, JOLIET_ROOT * SECTOR)
  for (const { file, sector } of placed.files) image.set(file.content, sector * SECTOR)
  return image
}

interface Placed {
  readonly file: IsoFile
  readonly sector: number
}

const place = (files: readonly IsoFile[]): { files: Placed[]; end: number } => {
  let next = FIRST_FILE
  const placed = files.map(file => {
    const sector = next
    next += Math.max(1, Math.ceil(file.content.length / SECTOR))
    return { file, sector }
  })
  return { files: placed, end: next }
}

const descriptor = (
  { label, total, at }: { label: string; total: number; at: Date },
  kind: 'primary' | 'joliet',
): Buffer => {
  const joliet = kind === 'joliet'
  const text = (value: string, bytes: number) =>
    joliet ? ucs2(value.padEnd(bytes / 2), bytes) : Buffer.from(value.padEnd(bytes), 'latin1')
  const root = joliet ? JOLIET_ROOT : PRIMARY_ROOT
  const sector = Buffer.alloc(SECTOR)
  sector[0] = joliet ? 2 : 1
  sector.write('CD001', 1, 'latin1')
  sector[6] = 1
  text('LINUX', 32).copy(sector, 8)
  text(label, 32).copy(sector, 40)
  both32(total).copy(sector, 80)
  // Level 3 of UCS-2, which is what tells Joliet from an ordinary second descriptor.
  if (joliet) sector.write('%/E', 88, 'latin1')
  both16(1).copy(sector, 120)
  both16(1).copy(sector, 124)
  both16(SECTOR).copy(sector, 128)
  both32(10).copy(sector, 132)
  sector.writeUInt32LE(joliet ? 21 : 19, 140)
  sector.writeUInt32BE(joliet ? 22 : 20, 148)
  record({ sector: root, size: SECTOR, name: Buffer.from([0]), directory: true, at }).copy(sector, 156)
  for (const [start, bytes] of [
    [190, 128],
    [318, 128],
    [446, 128],
    [574, 128],
    [702, 37],
    [739, 37],
    [776, 37],
  ] as const) {
    text('', bytes - (bytes % 2)).copy(sector, start)
  }
  for (const start of [813, 830, 864]) longDate(at).copy(sector, start)
  sector.write('0'.repeat(16), 847, 'latin1')
  sector[881] = 1
  return sector
}

const terminator = (): Buffer => {
  const sector = Buffer.alloc(SECTOR)
  sector[0] = 255
  sector.write('CD001', 1, 'latin1')
  sector[6] = 1
  return sector
}

/** One entry: the root. */
const pathTable = (root: number, order: 'little' | 'big'): Buffer => {
  const entry = Buffer.alloc(10)
  entry[0] = 1
  if (order === 'little') {
    entry.writeUInt32LE(root, 2)
    entry.writeUInt16LE(1, 6)
  } else {
    entry.writeUInt32BE(root, 2)
    entry.writeUInt16BE(1, 6)
  }
  return entry
}

const directory = (
  self: number,
  files: readonly Placed[],
  nameOf: (name: string) => Buffer,
  at: Date,
): Buffer =>
  Buffer.concat([
    record({ sector: self, size: SECTOR, name: Buffer.from([0]), directory: true, at }),
    record({ sector: self, size: SECTOR, name: Buffer.from([1]), directory: true, at }),
    ...files.map(({ file, sector }) =>
      record({ sector, size: file.content.length, name: nameOf(file.name), directory: false, at }),
    ),
  ])

interface Entry {
  sector: number
  size: number
  name: Buffer
  directory: boolean
  at: Date
}

const record = ({ sector, size, name, directory: isDirectory, at }: Entry): Buffer => {
  const entry = Buffer.alloc(33 + name.length + (name.length % 2 === 0 ? 1 : 0))
  entry[0] = entry.length
  both32(sector).copy(entry, 2)
  both32(size).copy(entry, 10)
  Buffer.from([
    at.getUTCFullYear() - 1900,
    at.getUTCMonth() + 1,
    at.getUTCDate(),
    at.getUTCHours(),
    at.getUTCMinutes(),
    at.getUTCSeconds(),
    0,
  ]).copy(entry, 18)
  entry[25] = isDirectory ? 2 : 0
  both16(1).copy(entry, 28)
  entry[32] = name.length
  name.copy(entry, 33)
  return entry
}

/** Linux shows these in lower case, so even a reader without Joliet finds `user-data`. */
const primaryName = (name: string): Buffer => Buffer.from(`${name.toUpperCase()};1`, 'latin1')
const jolietName = (name: string): Buffer => ucs2(name, name.length * 2)

const ucs2 = (text: string, bytes: number): Buffer => Buffer.from(text, 'utf16le').subarray(0, bytes).swap16()

const both32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt32LE(value, 0)
  bytes.writeUInt32BE(value, 4)
  return bytes
}

const both16 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt16LE(value, 0)
  bytes.writeUInt16BE(value, 2)
  return bytes
}

const longDate = (at: Date): Buffer =>
  Buffer.concat([Buffer.from(`${at.toISOString().replace(/\D/g, '').slice(0, 14)}00`), Buffer.from([0])])

const check = (label: string, files: readonly IsoFile[]): void => {
  const bad = files.find(file => !/^[A-Za-z0-9_.-]{1,30}$/.test(file.name))
  if (bad) throw new AppError('invalid', `"${bad.name}" is no name for a file of a seed image.`)
  if (!/^[A-Za-z0-9_-]{1,16}$/.test(label))
    throw new AppError('invalid', `"${label}" is no label for a seed image.`)
  if (files.length > MAX_FILES)
    throw new AppError('too_large', `A seed image holds at most ${MAX_FILES} files, not ${files.length}.`)
  if (new Set(files.map(file => file.name.toUpperCase())).size !== files.length) {
    throw new AppError('invalid', 'Two files of a seed image have the same name.')
  }
}
