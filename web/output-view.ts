import { follow } from './api.ts'
import { h, show } from './dom.ts'
import { plain, size } from './format.ts'
import { failure } from './parts.ts'
import type { OutputPage } from './views.ts'

/** A long log would make the page slow: so many pieces are kept, older ones go. */
const PIECES = 4000

/** Output as it comes. It stays at the end while the reader does. */
export const outputView = (jobId: string, signal: AbortSignal): HTMLElement => {
  const text = h('pre', { class: 'output', tabindex: '0', 'aria-label': 'Output' })
  const problem = h('div')
  const add = (...pieces: HTMLElement[]): void => {
    const atEnd = text.scrollTop + text.clientHeight >= text.scrollHeight - 20
    text.append(...pieces)
    while (text.childElementCount > PIECES) text.firstElementChild?.remove()
    if (atEnd) text.scrollTop = text.scrollHeight
  }
  const run = async (): Promise<void> => {
    try {
      for await (const { event, data } of follow(`/api/jobs/${jobId}/output/stream`, signal))
        if (event === 'output') add(...(JSON.parse(data) as OutputPage).pieces.map(pieceView))
    } catch (error) {
      show(problem, failure(error))
    }
  }
  void run()
  return h('section', {}, h('h2', {}, 'Output'), problem, text)
}

const pieceView = ({ stream, text, base64, skipped }: OutputPage['pieces'][number]): HTMLElement => {
  if (skipped !== undefined) return h('span', { class: 'gap' }, `\n… ${size(skipped)} left out …\n`)
  if (base64 !== undefined)
    return h('span', { class: 'gap' }, `[${size(atob(base64).length)} that are not text]`)
  return h('span', { class: stream }, plain(text ?? ''))
}
