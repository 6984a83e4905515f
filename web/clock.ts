import { signal } from '@preact/signals'

/** The time, once a second, for durations that tick. */
export const now = signal(Date.now())

setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, 1000)
