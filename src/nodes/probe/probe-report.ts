import { normalizeArch, normalizeOs } from '../platform.ts'

export interface ProbeReport {
  os: string
  arch: string
  hostName: string
  cores: number
  load: number
  /** Percentages from 0 to 100. */
  cpu: number
  memory: number
  disk: number
  memoryTotalMb: number
  diskFreeMb: number
  /** The login user is root. */
  root: boolean
  tools: string[]
  /** bubblewrap works on the node. */
  isolates: boolean
  /** Number of Deputy commands that are running on the node. */
  jobs: number
}

/** Parses the output of the probe. A missing value or one out of range is an error. */
export const parseReport = (text: string): ProbeReport => {
  const lines = text.split('\n').map(line => line.trim())
  if (!lines.includes('end')) throw new Error('the answer is incomplete')
  const fields = new Map(lines.map(line => [line.split(' ')[0]!, line.split(' ').slice(1)]))
  const words = (key: string): string[] => {
    const value = fields.get(key)
    if (!value) throw new Error(`the answer has no "${key}"`)
    return value
  }
  const number = (key: string, index = 0, max = Number.MAX_SAFE_INTEGER): number => {
    const value = Number(words(key)[index] || Number.NaN)
    if (!Number.isFinite(value) || value < 0 || value > max)
      throw new Error(`invalid value "${key} ${words(key).join(' ')}"`)
    return value
  }
  const total = number('memory', 0)
  const size = number('disk', 0)
  if (total === 0) throw new Error('the total memory is 0')
  return {
    os: normalizeOs(words('os').join(' ')),
    arch: normalizeArch(words('arch')[0] ?? ''),
    hostName: words('host')[0] ?? '',
    cores: Math.max(1, Math.round(number('cores', 0, 100_000))),
    load: number('load', 0, 1_000_000),
    cpu: number('cpu', 0, 1001) / 10,
    memory: percent(total - Math.min(total, number('memory', 1)), total),
    disk: percent(size - Math.min(size, number('disk', 1)), size),
    memoryTotalMb: Math.round(total / 1024),
    diskFreeMb: Math.round(number('disk', 1) / 1024),
    root: number('uid') === 0,
    tools: words('tools').filter(Boolean),
    isolates: fields.has('isolation'),
    jobs: number('jobs'),
  }
}

const percent = (part: number, whole: number): number =>
  whole === 0 ? 0 : Math.round((part / whole) * 1000) / 10
