const UNITS = { K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 } as const

export const SIZE_PATTERN = /^[1-9]\d{0,8}[KMGT]$/

/** `"2G"` → 2147483648. The caller has validated the text with SIZE_PATTERN. */
export const parseSize = (text: string): number => {
  const unit = UNITS[text.slice(-1) as keyof typeof UNITS]
  return Number(text.slice(0, -1)) * unit
}

/** 2147483648 → `"2.0 GB"`, for display. */
export const formatSize = (bytes: number): string => {
  if (bytes < 1024) return `${bytes} B`
  const steps = ['KB', 'MB', 'GB', 'TB'] as const
  let value = bytes / 1024
  let step = 0
  while (value >= 1024 && step < steps.length - 1) {
    value /= 1024
    step += 1
  }
  return `${value.toFixed(1)} ${steps[step]}`
}
