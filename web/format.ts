export const size = (bytes: number): string => {
  const units = ['B', 'KB', 'MB', 'GB']
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit += 1
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`
}

export const seconds = (value: number | null): string => {
  if (value === null) return ''
  if (value < 60) return `${value < 10 ? value.toFixed(2) : value.toFixed(0)} s`
  const minutes = Math.floor(value / 60)
  return minutes < 60
    ? `${minutes} min ${Math.round(value % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

export const time = (iso: string | null): string => (iso === null ? '' : new Date(iso).toLocaleString())

const ESCAPE = String.fromCharCode(27)
const BELL = String.fromCharCode(7)
const SEQUENCE = new RegExp(
  `${ESCAPE}(?:\\[[0-?]*[ -/]*[@-~]|\\][^${BELL}]*(?:${BELL}|${ESCAPE}\\\\)|[@-_])`,
  'g',
)

/** Colours and cursor moves of a terminal say nothing here. */
export const plain = (text: string): string => text.replace(SEQUENCE, '').replace(/\r(?!\n)/g, '\n')
