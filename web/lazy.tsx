import { useSignal } from '@preact/signals'
import type { ComponentType, VNode } from 'preact'
import { useEffect } from 'preact/hooks'

/** A component that is not part of the first load. `waiting` has its place until it is there. */
export const lazy = (load: () => Promise<{ default: ComponentType }>, waiting: VNode): ComponentType => {
  const Lazy = () => {
    const loaded = useSignal<ComponentType | undefined>(undefined)
    useEffect(() => {
      let isGone = false
      load().then(
        ({ default: Component }) => {
          if (!isGone) loaded.value = Component
        },
        // The rest of the page is still of use; the next visit tries again.
        () => {},
      )
      return () => {
        isGone = true
      }
    }, [])
    const Component = loaded.value
    return Component === undefined ? waiting : <Component />
  }
  return Lazy
}
