import type { JobState } from '../../jobs/states.ts'
import type { Colors } from './colors.ts'

/** 0.34 → `0.34 s`, 75 → `1m 15s`, 7260 → `2h 1m`. */
export const duration = (seconds: number | null): string => {
  if (seconds === null) return '–'
  if (seconds < 10) return `${seconds.toFixed(2)} s`
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 60
    ? `${minutes}m ${Math.floor(seconds % 60)}s`
    : `${Math.floor(minutes / 60)}h ${minutes % 60}m`
}

/** The time of day here, with its offset from UTC: `14:03:07.120+02:00`. */
export const localTime = (at: number): string => {
  const offset = -new Date(at).getTimezoneOffset()
  const pad = (value: number): string => String(Math.floor(Math.abs(value))).padStart(2, '0')
  const zone = `${offset < 0 ? '-' : '+'}${pad(offset / 60)}:${pad(offset % 60)}`
  return new Date(at + offset * 60_000).toISOString().slice(11, 23) + zone
}

export const age = (iso: string): string => {
  const seconds = Math.max(0, (Date.now() - Date.parse(iso)) / 1000)
  if (seconds < 60) return `${Math.floor(seconds)}s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`
}

export const phases = (value: Readonly<Record<string, number>>): string =>
  Object.entries(value)
    // `running` (measured by the daemon) and `run` (measured by the machine) are the same time.
    .filter(([name]) => name !== 'running' || value.run === undefined)
    .map(([name, ms]) => `${name} ${ms < 1000 ? `${Math.round(ms)} ms` : duration(ms / 1000)}`)
    .join(', ')

/** The end of an id: with ids ordered by time, that is where they differ. Commands take it. */
export const shortId = (id: string): string => id.slice(-8)

export const statusColor = (status: JobState, colors: Colors): ((text: string) => string) => {
  if (status === 'success') return colors.green
  if (status === 'failed' || status === 'timeout') return colors.red
  return status === 'cancelled' ? colors.yellow : colors.cyan
}

export const statusMark = (status: JobState): string => MARKS[status]

const MARKS: Record<JobState, string> = {
  pending: '…',
  provisioning: '…',
  running: '▸',
  success: '✓',
  failed: '✗',
  timeout: '◔',
  cancelled: '⊘',
}
