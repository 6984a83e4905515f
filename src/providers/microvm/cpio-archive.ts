export interface CpioEntry {
  readonly path: string
  /** Absent for a directory. */
  readonly content?: Buffer | string
  readonly executable?: boolean
}

const DIRECTORY = 0o040755
const FILE = 0o100644
const PROGRAM = 0o100755

/** An archive in the format `newc`, which the kernel unpacks as its first file system. */
export const cpioArchive = (entries: readonly CpioEntry[]): Buffer =>
  Buffer.concat([
    ...entries.flatMap((entry, index) => record(index + 1, entry)),
    ...record(0, { path: 'TRAILER!!!', content: '' }),
  ])

const record = (inode: number, { path, content, executable }: CpioEntry): Buffer[] => {
  const data = Buffer.from(content ?? '')
  const name = Buffer.from(`${path}\0`)
  const mode = content === undefined ? DIRECTORY : executable ? PROGRAM : FILE
  // inode, mode, uid, gid, links, mtime, size, device (2), its own device (2), length of the name, checksum.
  const fields = [inode, mode, 0, 0, 1, 0, data.length, 0, 0, 0, 0, name.length, 0]
  const header = Buffer.from(`070701${fields.map(one => one.toString(16).padStart(8, '0')).join('')}`)
  return [padded(Buffer.concat([header, name])), padded(data)]
}

const padded = (data: Buffer): Buffer => Buffer.concat([data, Buffer.alloc(-data.length & 3)])
