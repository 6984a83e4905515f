import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

interface Props {
  readonly count: number
  /** Of every row, in CSS pixels. */
  readonly rowHeight: number
  /** The row that must be in sight. */
  readonly active: number
  row(index: number): ComponentChildren
  onEnd(): void
}

const MARGIN_ROWS = 12

/** Draws only the rows in sight, however many there are. */
export const VirtualRows = ({ count, rowHeight, active, row, onEnd }: Props) => {
  const box = useRef<HTMLDivElement>(null)
  const seen = useSignal({ top: 0, height: 900 })
  useEffect(() => {
    const element = box.current!
    const measure = (): void => {
      seen.value = { top: element.scrollTop, height: element.clientHeight }
    }
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    element.addEventListener('scroll', measure, { passive: true })
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', measure)
    }
  }, [])
  useEffect(() => {
    const element = box.current!
    const top = active * rowHeight
    if (active < 0) return
    if (top < element.scrollTop) element.scrollTop = top
    else if (top + rowHeight > element.scrollTop + element.clientHeight)
      element.scrollTop = top + rowHeight - element.clientHeight
  }, [active, rowHeight])

  const { top, height } = seen.value
  const first = Math.max(0, Math.floor(top / rowHeight) - MARGIN_ROWS)
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + MARGIN_ROWS)
  useEffect(() => {
    if (last >= count - MARGIN_ROWS) onEnd()
  }, [last, count])
  const rows: ComponentChildren[] = []
  for (let index = first; index < last; index++) rows.push(row(index))
  return (
    <div class="rows" ref={box} tabIndex={-1}>
      <div style={{ height: `${count * rowHeight}px`, position: 'relative' }}>
        <div style={{ position: 'absolute', insetInline: '0', top: `${first * rowHeight}px` }}>{rows}</div>
      </div>
    </div>
  )
}
