import { useEffect } from 'preact/hooks'

type Keys = Readonly<Record<string, (event: KeyboardEvent) => void>>

const isTyping = ({ target }: Event): boolean =>
  target instanceof HTMLElement && /^(input|textarea|select)$/i.test(target.tagName)

/** Single keys of a page. They rest while the user types, and while a dialog is open. */
export const useKeys = (keys: Keys): void => {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      if (isTyping(event) || document.querySelector('dialog[open]') !== null) return
      const action = keys[event.key]
      if (action === undefined) return
      event.preventDefault()
      action(event)
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  })
}
