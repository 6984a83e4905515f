import { execFile } from 'node:child_process'
import { access } from 'node:fs/promises'
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
  const known = await access(file).then(
    () => true,
    () => false,
  )
  if (!known)
    await run('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'qcow2', '-b', base, file, ...sizes])
  else if (size !== undefined) await run('qemu-img', ['resize', '-q', file, size])
}
