export interface Colors {
  readonly enabled: boolean
  bold(text: string): string
  dim(text: string): string
  red(text: string): string
  green(text: string): string
  yellow(text: string): string
  blue(text: string): string
  cyan(text: string): string
}

/** NO_COLOR takes precedence over FORCE_COLOR, and both over whether the stream is a terminal. */
export const chooseColors = (options: { env: NodeJS.ProcessEnv; isTTY: boolean; off?: boolean }): Colors => {
  const { env, isTTY, off = false } = options
  if (off || env.NO_COLOR) return createColors(false)
  if (env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== '') return createColors(env.FORCE_COLOR !== '0')
  return createColors(isTTY && env.TERM !== 'dumb')
}

export const createColors = (enabled: boolean): Colors => {
  const paint = (open: number, close: number) => (text: string) =>
    enabled && text !== '' ? `\x1b[${open}m${text}\x1b[${close}m` : text
  return {
    enabled,
    bold: paint(1, 22),
    dim: paint(2, 22),
    red: paint(31, 39),
    green: paint(32, 39),
    yellow: paint(33, 39),
    blue: paint(34, 39),
    cyan: paint(36, 39),
  }
}
