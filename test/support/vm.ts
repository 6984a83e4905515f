import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { MachineImage } from './pve/guests/qemu/index.ts'

const BUILD = fileURLToPath(new URL('../vm/image/build.sh', import.meta.url))

/** Where machines find the listener of a test, in the network that QEMU makes for them. */
export const CALLBACK = { host: '10.0.2.100', port: 8765 }

export type ImageOrReason =
  | { readonly image: MachineImage; readonly cloudImage: string; readonly missing?: never }
  | { readonly image?: never; readonly cloudImage?: never; readonly missing: string }

/** The image that machines boot, and one that is not complete, built on first use, or why there is none. */
export const findImage = (): ImageOrReason => {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return { missing: 'machines are built and booted on Linux on x86-64 only' }
  const absent = ['qemu-system-x86_64', 'qemu-img', 'socat', 'setpriv'].find(
    tool => spawnSync('sh', ['-c', `command -v ${tool}`]).status !== 0,
  )
  if (absent !== undefined) return { missing: `${absent} is not installed: run test/vm/image/setup.sh` }
  const built = spawnSync('sh', [BUILD], { encoding: 'utf8', timeout: 900_000 })
  const directory = built.stdout?.trim() ?? ''
  if (built.status !== 0 || directory === '') {
    const words = built.stderr?.trim().split('\n').slice(-3).join('; ')
    return { missing: `the image of the machines could not be built: ${words || built.error?.message}` }
  }
  return {
    image: {
      disk: join(directory, 'disk.qcow2'),
      kernel: join(directory, 'vmlinux'),
      initrd: join(directory, 'initrd'),
    },
    cloudImage: join(directory, 'cloud.qcow2'),
  }
}

/** A way to a port on loopback that can be cut and mended, whatever runs over it. */
export const openLink = async (port: number) => {
  const ends = new Set<Socket>()
  let whole = true
  let refused = 0
  const server = createServer(near => {
    if (!whole) {
      refused++
      return void near.destroy()
    }
    const far = connect(port, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      ends.add(from)
      from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        ends.delete(from)
        to.destroy()
      })
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const cut = (): void => {
    whole = false
    for (const end of ends) end.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    mend: () => {
      whole = true
    },
    /** How often somebody came while it was cut. */
    refused: () => refused,
    close: () => {
      cut()
      return new Promise<void>(resolve => server.close(() => resolve()))
    },
  }
}

/** What a machine printed last, for the message of a test that failed. */
export const consoleTail = (directory: string, vmid: number): string => {
  try {
    return readFileSync(join(directory, String(vmid), 'console'), 'utf8').slice(-4000)
  } catch {
    return '(no console)'
  }
}
