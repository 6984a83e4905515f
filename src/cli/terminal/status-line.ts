import { oneLine } from '../../jobs/visible-text.ts'
import type { Colors } from './colors.ts'
import type { Writer } from './writer.ts'

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'] as const
const CLEAR = '\r\x1b[2K'

/** One live line at the bottom of a terminal. Hide it before printing anything else. */
export interface StatusLine {
  set(text: string): void
  /** Clears the line until `show` is called. */
  hide(): Promise<void>
  show(): void
  stop(): Promise<void>
}

export const createStatusLine = (err: Writer, colors: Colors): StatusLine => {
  if (!err.isTTY) return { set: () => {}, hide: async () => {}, show: () => {}, stop: async () => {} }
  let text = ''
  let frame = 0
  let hidden = false
  let drawn = false

  const draw = (): void => {
    if (hidden || text === '') return
    frame = (frame + 1) % FRAMES.length
    const line = `${colors.cyan(FRAMES[frame]!)} ${colors.dim(oneLine(text, err.columns - 4))}`
    drawn = true
    // Without a terminal there is nobody to see the line.
    err.write(CLEAR + line).catch(() => {})
  }
  const clear = async (): Promise<void> => {
    if (drawn) await err.write(CLEAR)
    drawn = false
  }
  const timer = setInterval(draw, 100)
  timer.unref()

  return {
    set: next => {
      text = next
    },
    hide: async () => {
      hidden = true
      await clear()
    },
    show: () => {
      hidden = false
    },
    stop: async () => {
      clearInterval(timer)
      hidden = true
      await clear()
    },
  }
}
