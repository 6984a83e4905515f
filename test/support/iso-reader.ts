export interface IsoContent {
  readonly label: string
  readonly files: ReadonlyMap<string, Buffer>
}

const SECTOR = 2048

/** The files in the root directory of an ISO-9660 image, by their Joliet names; undefined when it is none. */
export const readIso = (image: Buffer): IsoContent | undefined => {
  const primary = findDescriptor(image, 1)
  if (!primary) return undefined
  const joliet = findDescriptor(image, 2)
  const volume = joliet ?? primary
  const label = primary.subarray(40, 72).toString('latin1').trim()
  const start = volume.readUInt32LE(158) * SECTOR
  const size = volume.readUInt32LE(166)
  const files = new Map<string, Buffer>()
  for (const entry of entries(image.subarray(start, start + size))) {
    if (entry.isDirectory) continue
    const at = entry.sector * SECTOR
    files.set(decodeName(entry.name, joliet !== undefined), image.subarray(at, at + entry.size))
  }
  return { label, files }
}

const findDescriptor = (image: Buffer, type: number): Buffer | undefined => {
  for (let sector = 16; (sector + 1) * SECTOR <= image.length; sector++) {
    const bytes = image.subarray(sector * SECTOR, (sector + 1) * SECTOR)
    if (bytes.toString('latin1', 1, 6) !== 'CD001' || bytes[0] === 255) return undefined
    if (bytes[0] === type) return bytes
  }
  return undefined
}

function* entries(
  directory: Buffer,
): Generator<{ name: Buffer; sector: number; size: number; isDirectory: boolean }> {
  for (let at = 0; at < directory.length; ) {
    const length = directory[at]!
    if (length === 0) {
      // Records do not cross sectors; the rest of this one is empty.
      at = (Math.floor(at / SECTOR) + 1) * SECTOR
      continue
    }
    const record = directory.subarray(at, at + length)
    yield {
      name: record.subarray(33, 33 + record[32]!),
      sector: record.readUInt32LE(2),
      size: record.readUInt32LE(10),
      isDirectory: (record[25]! & 2) !== 0,
    }
    at += length
  }
}

const decodeName = (name: Buffer, joliet: boolean): string =>
  joliet
    ? Buffer.from(name).swap16().toString('utf16le').replace(/;1$/, '')
    : name
        .toString('latin1')
        .replace(/\.?;1$/, '')
        .toLowerCase()
