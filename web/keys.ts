import { useEffect } from 'preact/hooks'

type Keys = Readonly<Record<string, (event: KeyboardEvent) => void>>

const isTyping = ({ target }: Event): boolean =>
  target instanceof HTMLElement && /^(input|textarea|select)$/i.test(target.tagName)

/** Keyboard shortcuts of a page; disabled while a dialog is open, and single keys also while the user types. */
export const useKeys = (keys: Keys): void => {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const isChord = event.ctrlKey || event.metaKey
      if (event.altKey || document.querySelector('dialog[open]') !== null) return
      if (isTyping(event) && !isChord) return
      const action = keys[isChord ? `Ctrl ${event.key}` : event.key]
      if (action === undefined) return
      event.preventDefault()
      action(event)
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  })
}
