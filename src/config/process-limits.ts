import { readFileSync } from 'node:fs'
import { AppError } from '../jobs/errors.ts'
import { formatSize } from '../jobs/sizes.ts'

/**
 * Open files. Node loads its modules concurrently, which alone takes more than 128. Each running job takes a few: its
 * socket, its output, and the streams of its followers.
 */
const FILES = { base: 256, perJob: 8 }
/** Node reserves more than 10 GiB of address space for WebAssembly guard regions, without using memory. */
const ADDRESS_SPACE = 16 * 1024 ** 3

/** Refuses to start when a process limit is too low, because the daemon would fail later with obscure errors. */
export const requireProcessLimits = (
  { running }: { readonly running: number },
  limits = readLimits(),
): void => {
  const files = FILES.base + FILES.perJob * running
  if (limits.openFiles < files)
    throw new AppError(
      'unavailable',
      `The limit of open files is ${limits.openFiles}; the daemon needs ${files}.`,
      {
        hint: `ulimit -n ${files} (LimitNOFILE=${files} in a systemd unit)${running > 1 ? ', or a lower limits.running' : ''}`,
        retryable: false,
      },
    )
  if (limits.addressSpace < ADDRESS_SPACE)
    throw new AppError(
      'unavailable',
      `The limit of address space is ${formatSize(limits.addressSpace)}; the daemon needs ${formatSize(ADDRESS_SPACE)}.`,
      {
        hint: 'ulimit -v unlimited (LimitAS=infinity in a systemd unit); MemoryMax= limits memory instead',
        retryable: false,
      },
    )
}

export interface ProcessLimits {
  readonly openFiles: number
  readonly addressSpace: number
}

/** Reads the limits from /proc; without /proc they count as unlimited. */
const readLimits = (): ProcessLimits => {
  const text = readText('/proc/self/limits')
  const soft = (name: string): number => {
    const value = new RegExp(`^${name} +(\\d+)`, 'm').exec(text)?.[1]
    return value === undefined ? Number.POSITIVE_INFINITY : Number(value)
  }
  return { openFiles: soft('Max open files'), addressSpace: soft('Max address space') }
}

const readText = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
