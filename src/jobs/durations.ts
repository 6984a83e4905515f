const UNITS = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400 } as const

/** Seconds of `90`, `90s`, `5m`, `2h` or `1d`; undefined for other text. */
export const parseDuration = (text: string): number | undefined => {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text)
  return match ? Number(match[1]) * UNITS[(match[2] ?? 's') as keyof typeof UNITS] : undefined
}
