import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const BUILD = fileURLToPath(new URL('../vm/arm64/build.sh', import.meta.url))
const KNOWN = '/proc/sys/fs/binfmt_misc'
const OURS = `${KNOWN}/deputy-test-arm64`
/** The beginning of a program for arm64. F: what runs it is opened now, so that it is found from any root. */
const MAGIC = String.raw`\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00`
const MASK = String.raw`\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff`

export type Arm64 =
  | { readonly root: string; readonly missing?: never }
  | { readonly root?: never; readonly missing: string }

/** A system for another processor, built on first use, or why there is none. */
export const findArm64 = (): Arm64 => {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return { missing: 'another processor is emulated on Linux on x86-64 only' }
  if (process.getuid?.() !== 0) return { missing: 'another root directory needs root' }
  const absent = ['qemu-aarch64-static', 'mmdebstrap', 'arch-test'].find(
    tool => spawnSync('sh', ['-c', `command -v ${tool}`]).status !== 0,
  )
  if (absent !== undefined) return { missing: `${absent} is not installed: run test/vm/image/setup.sh` }
  const unknown = teachKernel()
  if (unknown !== undefined) return { missing: unknown }
  const built = spawnSync('sh', [BUILD], { encoding: 'utf8', timeout: 600_000 })
  const root = built.stdout.trim()
  if (built.status === 0 && root !== '') return { root }
  return { missing: `it could not be built: ${built.stderr.trim().split('\n').slice(-3).join('; ')}` }
}

/** Undoes what `findArm64` taught the kernel, if it did. */
export const forgetArm64 = (): void => {
  if (existsSync(OURS)) writeFileSync(OURS, '-1')
}

const teachKernel = (): string | undefined => {
  if (existsSync(`${KNOWN}/qemu-aarch64`) || existsSync(OURS)) return undefined
  try {
    if (!existsSync(`${KNOWN}/register`)) spawnSync('mount', ['-t', 'binfmt_misc', 'binfmt_misc', KNOWN])
    const interpreter = spawnSync('sh', ['-c', 'command -v qemu-aarch64-static'], { encoding: 'utf8' })
    writeFileSync(
      `${KNOWN}/register`,
      `:deputy-test-arm64:M::${MAGIC}:${MASK}:${interpreter.stdout.trim()}:OCF`,
    )
    return undefined
  } catch (error) {
    return `the kernel does not learn how to run programs of arm64: ${String(error)}`
  }
}
