/** How a run of text looks, as names of CSS classes; empty for plain text. */
export type Style = string

export interface Span {
  readonly text: string
  readonly style: Style
}

interface Look {
  readonly front?: number
  readonly back?: number
  readonly flags: ReadonlySet<string>
}

const PLAIN: Look = { flags: new Set() }
const FLAGS: Readonly<Record<number, string>> = { 1: 'bold', 2: 'dim', 3: 'italic', 4: 'under', 9: 'strike' }
const ENDS: Readonly<Record<number, readonly string[]>> = {
  22: ['bold', 'dim'],
  23: ['italic'],
  24: ['under'],
  29: ['strike'],
}

/**
 * Follows the colours of a terminal. All colours become the eight of the theme: those are readable on its
 * background, whatever the program has chosen.
 */
export const createAnsiStyle = () => {
  let look = PLAIN
  return {
    get style(): Style {
      const { front, back, flags } = look
      return [
        ...(front === undefined ? [] : [`fg${front % 8}`]),
        ...(back === undefined ? [] : [`bg${back % 8}`]),
        ...flags,
      ].join(' ')
    },
    /** Takes the parameters of one `ESC [ … m`. */
    apply: (parameters: string): void => {
      const codes = parameters.split(/[;:]/).map(Number)
      for (let at = 0; at < codes.length; at++) {
        const code = codes[at]!
        if (code === 38 || code === 48) {
          const { color, used } = extended(codes.slice(at + 1))
          at += used
          if (color !== undefined) look = { ...look, [code === 38 ? 'front' : 'back']: color }
        } else look = next(look, code)
      }
    },
  }
}

const next = (look: Look, code: number): Look => {
  if (code === 0) return PLAIN
  const flag = FLAGS[code]
  if (flag !== undefined) return { ...look, flags: new Set([...look.flags, flag]) }
  const ended = ENDS[code]
  if (ended !== undefined)
    return { ...look, flags: new Set([...look.flags].filter(name => !ended.includes(name))) }
  if (code >= 30 && code <= 37) return { ...look, front: code - 30 }
  if (code >= 90 && code <= 97) return { ...look, front: code - 82 }
  if (code >= 40 && code <= 47) return { ...look, back: code - 40 }
  if (code >= 100 && code <= 107) return { ...look, back: code - 92 }
  const { front, back, flags } = look
  if (code === 39) return { flags, ...(back !== undefined && { back }) }
  if (code === 49) return { flags, ...(front !== undefined && { front }) }
  return look
}

/** `5;N` of 256 colours, or `2;R;G;B`. */
const extended = (rest: readonly number[]): { color?: number; used: number } => {
  const [kind, first = 0, green = 0, blue = 0] = rest
  if (kind === 2) return { color: nearest(first, green, blue), used: 4 }
  if (kind !== 5) return { used: 0 }
  if (first < 16) return { color: first, used: 2 }
  if (first >= 232) return { color: first < 238 ? 8 : first < 248 ? 7 : 15, used: 2 }
  const level = (value: number): number => (value % 6) * 51
  const cube = first - 16
  return { color: nearest(level(Math.floor(cube / 36)), level(Math.floor(cube / 6)), level(cube)), used: 2 }
}

/** One bit a channel, and one for brightness. */
const nearest = (red: number, green: number, blue: number): number => {
  const most = Math.max(red, green, blue)
  if (most < 60) return 0
  if (most - Math.min(red, green, blue) < 40) return most > 200 ? 15 : most > 130 ? 7 : 8
  const bit = (value: number, weight: number): number => (value > most * 0.6 ? weight : 0)
  return bit(red, 1) + bit(green, 2) + bit(blue, 4) + (most > 220 ? 8 : 0)
}
