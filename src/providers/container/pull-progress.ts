import { field, text } from './engine-address.ts'

const EVERY_MS = 1000
const DONE = /^(Pull complete|Already exists|Download complete)/

/** Turns the lines of a pull into one short text, at most once a second. */
export const createPullProgress = (
  image: string,
  report: ((what: string) => void) | undefined,
): ((line: unknown) => void) => {
  const layers = new Map<string, { current: number; total: number; done: boolean }>()
  let last = Number.NEGATIVE_INFINITY
  report?.(`pulling ${image}`)
  return line => {
    const [id, status] = [text(line, 'id'), text(line, 'status') ?? '']
    if (id === undefined || !/^[0-9a-f]{12}/.test(id)) return
    const detail = field(line, 'progressDetail')
    const known = layers.get(id) ?? { current: 0, total: 0, done: false }
    const isDownload = status === 'Downloading'
    layers.set(id, {
      current: isDownload ? numberOf(detail, 'current') : known.current,
      total: isDownload ? numberOf(detail, 'total') : known.total,
      done: known.done || DONE.test(status),
    })
    const now = performance.now()
    if (now - last < EVERY_MS) return
    last = now
    report?.(`pulling ${image}: ${summary([...layers.values()])}`)
  }
}

const summary = (layers: readonly { current: number; total: number; done: boolean }[]): string => {
  const done = layers.filter(layer => layer.done)
  const total = layers.reduce((sum, layer) => sum + layer.total, 0)
  const current = layers.reduce((sum, layer) => sum + (layer.done ? layer.total : layer.current), 0)
  const bytes = total === 0 ? '' : `, ${megabytes(current)} of ${megabytes(total)} MB`
  return `${done.length} of ${layers.length} layers${bytes}`
}

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)

const numberOf = (value: unknown, name: string): number => {
  const found = field(value, name)
  return typeof found === 'number' ? found : 0
}
