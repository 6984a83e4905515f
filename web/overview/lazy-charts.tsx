import { useSignal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect } from 'preact/hooks'

/** The chart library is not part of the first load. */
export const LazyCharts = () => {
  const charts = useSignal<ComponentType | undefined>(undefined)
  useEffect(() => {
    let isGone = false
    import('./charts.tsx').then(
      ({ default: Charts }) => {
        if (!isGone) charts.value = Charts
      },
      // Without charts the page is still of use; the next visit tries again.
      () => {},
    )
    return () => {
      isGone = true
    }
  }, [])
  const Charts = charts.value
  return Charts === undefined ? <div class="charts waiting" aria-hidden="true" /> : <Charts />
}
