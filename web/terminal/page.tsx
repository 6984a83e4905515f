import { useSignal } from '@preact/signals'
import { FitAddon } from '@xterm/addon-fit'
import { type ITheme, Terminal } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import { useEffect, useRef } from 'preact/hooks'
import { Problem } from '../parts.tsx'
import { place } from '../router.ts'
import { withAdoptedStyles } from './adopt-styles.ts'
import type { BrowserSession } from './open-session.ts'
import { openTerminal } from './open-terminal.ts'

const TerminalPage = () => {
  const machineId = place.value.path[1] ?? ''
  const box = useRef<HTMLDivElement>(null)
  const problem = useSignal<unknown>(undefined)
  const state = useSignal('connecting…')
  const attempt = useSignal(0)
  useEffect(() => {
    const leaving = new AbortController()
    problem.value = undefined
    state.value = 'connecting…'
    showTerminal(box.current!, machineId, leaving.signal, text => {
      state.value = text
    }).catch(error => {
      if (leaving.signal.aborted) return
      state.value = 'not connected'
      problem.value = error
    })
    return () => leaving.abort()
  }, [machineId, attempt.value])
  return (
    <section class="terminal-page">
      <div class="bar">
        <h1>
          Terminal <code>{machineId.slice(0, 8)}</code>
        </h1>
        <span class="soft" role="status">
          {state.value}
        </span>
        <button
          type="button"
          onClick={() => {
            attempt.value += 1
          }}
        >
          Connect again
        </button>
      </div>
      <Problem error={problem.value} />
      <div class="terminal-box" ref={box} />
    </section>
  )
}
export default TerminalPage

/** Shows a terminal in the box until the signal aborts. The program in the machine ends with it. */
const showTerminal = async (
  box: HTMLElement,
  machineId: string,
  signal: AbortSignal,
  onState: (text: string) => void,
): Promise<void> => {
  const terminal = new Terminal({
    screenReaderMode: true,
    fontFamily: getComputedStyle(box).fontFamily,
    fontSize: 14,
    theme: themeOf(box),
  })
  const fit = new FitAddon()
  terminal.loadAddon(fit)
  const releaseStyles = withAdoptedStyles(() => terminal.open(box))
  fit.fit()
  let session: BrowserSession | undefined
  const sizeOf = () => ({ columns: terminal.cols, rows: terminal.rows })
  const observer = new ResizeObserver(() => fit.fit())
  observer.observe(box)
  signal.addEventListener('abort', () => {
    observer.disconnect()
    session?.close()
    terminal.dispose()
    releaseStyles()
  })
  session = await openTerminal(machineId, {
    terminal: sizeOf(),
    onData: bytes => terminal.write(bytes),
    signal,
  })
  if (signal.aborted) return session.close()
  const encoder = new TextEncoder()
  terminal.onData(text => session.write(encoder.encode(text)))
  terminal.onBinary(text => session.write(Uint8Array.from(text, character => character.charCodeAt(0))))
  terminal.onResize(() => session.resize(sizeOf()))
  onState('connected')
  terminal.focus()
  const code = await session.exit
  if (!signal.aborted) onState(code === null ? 'disconnected' : `ended with ${code}`)
}

const ANSI = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const

/** The colours of the page as values: xterm.js takes no variables of CSS. */
const themeOf = (box: HTMLElement): ITheme => {
  const resolved = (variable: string): string => {
    box.style.color = `var(${variable})`
    const { color } = getComputedStyle(box)
    box.style.color = ''
    return color
  }
  const ink = resolved('--ink')
  const colours = ANSI.flatMap((name, index) => {
    const value = resolved(`--ansi-${index}`)
    return [
      [name, value],
      [`bright${name[0]!.toUpperCase()}${name.slice(1)}`, value],
    ]
  })
  return {
    ...Object.fromEntries(colours),
    foreground: ink,
    cursor: ink,
    cursorAccent: resolved('--sunken'),
    background: resolved('--sunken'),
    selectionBackground: resolved('--found'),
  }
}
