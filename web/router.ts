import { signal } from '@preact/signals'

/** Where the user is: `#/jobs?status=failed`. What is shown lives in the address, so it can be shared and reloaded. */
export interface Place {
  readonly path: readonly string[]
  readonly query: URLSearchParams
}

const read = (): Place => {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2)
  return { path: path.split('/').filter(part => part !== ''), query: new URLSearchParams(query) }
}

export const place = signal<Place>(read())

addEventListener('hashchange', () => {
  place.value = read()
})

export const go = (hash: string): void => {
  location.hash = hash
}

/** Changes parameters of the page without a step in the history. An empty value removes one. */
export const setQuery = (changes: Readonly<Record<string, string>>): void => {
  const { path, query } = read()
  for (const [name, value] of Object.entries(changes))
    if (value === '') query.delete(name)
    else query.set(name, value)
  const text = query.toString()
  history.replaceState(null, '', `#/${path.join('/')}${text === '' ? '' : `?${text}`}`)
  place.value = read()
}
