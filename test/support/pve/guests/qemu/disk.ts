import { execFile } from 'node:child_process'
import { access, copyFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { drivesOf } from '../../vm.ts'

const run = promisify(execFile)

/** The disk of a machine: what it wrote, on top of the image that all share. It grows with the configuration. */
export const prepareDisk = async (
  file: string,
  base: string,
  config: Readonly<Record<string, string>>,
): Promise<void> => {
  const size = drivesOf(config).find(drive => !drive.cdrom)?.props.size
  const sizes = size === undefined ? [] : [size]
  if (!(await exists(file))) await layDisk(file, base, ...sizes)
  else if (size !== undefined) await run('qemu-img', ['resize', '-q', file, size])
}

/** A machine that was never started has no disk of its own yet, and neither has its clone. */
export const copyDisk = async ({ from, to, full }: DiskCopy): Promise<void> => {
  if (!(await exists(from))) return
  await (full ? copyFile(from, to) : layDisk(to, from))
}

export interface DiskCopy {
  readonly from: string
  readonly to: string
  readonly full: boolean
}

const layDisk = (file: string, base: string, ...size: readonly string[]) =>
  run('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'qcow2', '-b', base, file, ...size])

const exists = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  )
