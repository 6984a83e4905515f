import { ApiError, askJson, forgetToken, hasToken, saveToken } from './api.ts'
import { h, show } from './dom.ts'
import { jobPage } from './job-page.ts'
import { jobsPage } from './jobs-page.ts'
import { failure } from './parts.ts'
import type { Daemon } from './views.ts'

/** Draws into a place until the signal aborts. */
export type Page = (place: HTMLElement, signal: AbortSignal) => void

let current = new AbortController()

/** `#token=…` logs in (and leaves the address at once), `#/jobs/ID` is a job, everything else the list. */
const navigate = (): void => {
  current.abort()
  current = new AbortController()
  const token = /^#token=([\w.~-]+)$/.exec(location.hash)?.[1]
  if (token !== undefined) {
    saveToken(token)
    history.replaceState(null, '', '#/')
  }
  const place = document.querySelector('main')
  if (place === null) return
  if (!hasToken()) {
    askForToken(place)
    return
  }
  const id = /^#\/jobs\/([0-9a-f-]{36})$/.exec(location.hash)?.[1]
  void head()
  const page = id === undefined ? jobsPage : jobPage(id)
  page(place, current.signal)
}

/** The line at the top; its request also tells whether the token is good. */
const head = async (): Promise<void> => {
  const place = document.querySelector('main')
  const line = document.querySelector('#daemon')
  try {
    const { version, jobs } = await askJson<Daemon>('/api/daemon')
    if (line !== null) show(line, `${version} · ${jobs.running ?? 0} running · ${jobs.pending ?? 0} waiting`)
  } catch (error) {
    if (error instanceof ApiError && error.status === 401 && place !== null) {
      current.abort()
      forgetToken()
      askForToken(place, error)
    } else if (line !== null) show(line, 'not reachable')
  }
}

const askForToken = (place: HTMLElement, error?: unknown): void => {
  const input = h('input', { type: 'password', 'aria-label': 'Token', autocomplete: 'off', autofocus: true })
  const login = (event: Event): void => {
    event.preventDefault()
    if (input.value.trim() === '') return
    saveToken(input.value.trim())
    navigate()
  }
  show(
    place,
    h(
      'form',
      { class: 'login', on: { submit: login } },
      h('h1', {}, 'Token'),
      h(
        'p',
        {},
        "It is in the file 'token' of Deputy's state directory. 'token-readonly' lets you look, not change.",
      ),
      error !== undefined && failure(error),
      input,
      h('button', {}, 'Open'),
    ),
  )
}

addEventListener('hashchange', navigate)
addEventListener('jobs-changed', () => void head())
navigate()
