import { spawn } from 'node:child_process'
import { createReadStream, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'
import { makeBootFiles } from './boot-files.ts'
import { assertImageName, storeImage, type VmImage } from './image-store.ts'
import { KERNEL } from './programs.ts'
import { missingTools, notInstalled } from './required-tools.ts'

export interface BuildRequest {
  readonly imagesDir: string
  readonly name: string
  /** Packages besides those that every image has. */
  readonly packages: readonly string[]
  readonly suite: string
  readonly mirror: string
  onProgress(what: string): void
  readonly signal: AbortSignal
}

export const SUITE = 'trixie'
export const MIRROR = 'http://deb.debian.org/debian'
/** perl is part of every Debian system: the agent needs it. */
const ALWAYS = ['apt', 'bash', 'ca-certificates', 'curl', 'git', 'jq', 'procps', 'python3']
const KERNEL_PACKAGE = 'linux-image-cloud-amd64'
const UNUSED = ['doc', 'man', 'info', 'locale']

/** Makes an image of Debian packages: a kernel, an initrd and a read-only root. */
export const buildImage = async (request: BuildRequest): Promise<VmImage> => {
  const { imagesDir, name, packages, onProgress, signal } = request
  assertImageName(name)
  const missing = [...missingTools('run'), ...missingTools('build')]
  if (missing.length > 0) throw notInstalled(missing)
  mkdirSync(imagesDir, { recursive: true, mode: 0o700 })
  // No image has a name with a capital letter.
  const target = mkdtempSync(join(imagesDir, 'NEW-'))
  // The users of a namespace, as whom mmdebstrap works for an ordinary user, must get through to it.
  const scratch = mkdtempSync(join(tmpdir(), 'deputy-microvm-'))
  try {
    onProgress(`Installing Debian ${request.suite} (${[...ALWAYS, ...packages].join(', ')})`)
    await run('mmdebstrap', mmdebstrapArguments(request, scratch), { signal })
    onProgress('Packing the root file system')
    await run(
      'mksquashfs',
      [
        '-',
        join(target, 'root.squashfs'),
        '-tar',
        '-comp',
        'zstd',
        '-Xcompression-level',
        '3',
        '-noappend',
        '-quiet',
        '-no-progress',
      ],
      { input: join(scratch, 'root.tar'), signal },
    )
    onProgress('Unpacking the kernel')
    const { release, kernel, initrd } = makeBootFiles(join(scratch, 'kernel'))
    writeFileSync(join(target, 'vmlinux'), kernel)
    writeFileSync(join(target, 'initrd'), initrd)
    const contents = [`Debian ${request.suite}`, ...packages].join(', ')
    return storeImage(imagesDir, { name, from: target, kernel: release, contents })
  } finally {
    rmSync(scratch, { recursive: true, force: true })
    rmSync(target, { recursive: true, force: true })
  }
}

const mmdebstrapArguments = ({ suite, mirror, packages }: BuildRequest, scratch: string): string[] => {
  const hook = join(scratch, 'kernel.sh')
  const kernel = join(scratch, 'kernel')
  writeFileSync(hook, KERNEL)
  mkdirSync(kernel)
  return [
    ...['--quiet', '--variant=essential', `--include=${[...ALWAYS, ...packages].join(',')}`],
    ...['--aptopt=Acquire::Languages "none"', '--dpkgopt=force-unsafe-io'],
    ...UNUSED.map(part => `--dpkgopt=path-exclude=/usr/share/${part}/*`),
    `--customize-hook=sh ${hook} "$1" ${kernel} ${KERNEL_PACKAGE}`,
    ...[suite, join(scratch, 'root.tar'), mirror],
  ]
}

const MAX_STDERR = 4096

/** Runs a program; its last words are part of the error when it fails. */
const run = (
  program: string,
  args: readonly string[],
  { input, signal }: { input?: string; signal: AbortSignal },
): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      stdio: [input === undefined ? 'ignore' : 'pipe', 'ignore', 'pipe'],
      signal,
    })
    let said = ''
    child.stderr?.on('data', chunk => {
      said = `${said}${chunk}`.slice(-MAX_STDERR)
    })
    child.once('error', reject)
    child.once('close', code => {
      const last = said.trim().split('\n').slice(-3).join('; ')
      if (code === 0) resolve()
      else reject(new AppError('unavailable', `${program} failed with status ${code}: ${last}`))
    })
    if (input === undefined || child.stdin === null) return
    // A program that fails does not read everything; its status tells.
    child.stdin.on('error', () => undefined)
    createReadStream(input).on('error', reject).pipe(child.stdin)
  })
