import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { AppError } from '../../jobs/errors.ts'

export interface Tool {
  readonly program: string
  readonly package: string
}

const QEMU: Tool = { program: 'qemu-system-x86_64', package: 'qemu-system-x86' }
const BUBBLEWRAP: Tool = { program: 'bwrap', package: 'bubblewrap' }

const TOOLS = {
  run: [QEMU, BUBBLEWRAP],
  build: [
    { program: 'mmdebstrap', package: 'mmdebstrap' },
    { program: 'mksquashfs', package: 'squashfs-tools' },
    { program: 'zstd', package: 'zstd' },
    { program: 'xz', package: 'xz-utils' },
  ],
} as const

/** Searched as well: the PATH of an ordinary user may lack them. */
const MORE_DIRECTORIES = ['/usr/sbin', '/sbin', '/usr/bin', '/bin']

export const missingTools = (purpose: keyof typeof TOOLS): Tool[] =>
  TOOLS[purpose].filter(({ program }) => findProgram(program) === undefined)

export const findProgram = (program: string): string | undefined =>
  [...(process.env.PATH ?? '').split(delimiter), ...MORE_DIRECTORIES]
    .map(directory => join(directory, program))
    .find(isExecutable)

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

export const notInstalled = (missing: readonly Tool[]): AppError =>
  new AppError(
    'unsupported',
    `${missing.map(({ program }) => program).join(', ')} ${missing.length === 1 ? 'is' : 'are'} not installed.`,
    { hint: `Install what is missing: apt install ${missing.map(tool => tool.package).join(' ')}` },
  )
