import { signal } from '@preact/signals'

/**
 * Who is logged in. The session stays in the tabs of this origin and is sent as a bearer token: a cookie would be
 * sent to every other port of the same computer.
 */
const KEY = 'deputy-session'
const TABS_ANSWER_MS = 250

export const session = signal<string | undefined>(undefined)
export const loginProblem = signal<string | undefined>(undefined)

type Message = { readonly wanted: true } | { readonly session: string } | { readonly ended: true }

const tabs = new BroadcastChannel(KEY)

export const keepSession = (value: string): void => {
  sessionStorage.setItem(KEY, value)
  session.value = value
  loginProblem.value = undefined
}

export const dropSession = (problem?: string): void => {
  sessionStorage.removeItem(KEY)
  session.value = undefined
  loginProblem.value = problem
}

/** Ends the session in every tab. */
export const logOut = (): void => {
  dropSession()
  tabs.postMessage({ ended: true } satisfies Message)
}

/** From the code in the address, else as this tab had it before a reload, else from another tab. */
export const beginSession = async (): Promise<void> => {
  const code = takeCode()
  const kept = sessionStorage.getItem(KEY)
  if (code !== undefined) await exchangeCode(code)
  else if (kept !== null) keepSession(kept)
  else await askOtherTabs()
  // Opened in a tab that shows the console already, the address changes and the page stays.
  addEventListener('hashchange', () => {
    const next = takeCode()
    if (next !== undefined) void exchangeCode(next)
  })
  tabs.onmessage = ({ data }: MessageEvent<Message>) => {
    if ('wanted' in data && session.value !== undefined) tabs.postMessage({ session: session.value })
    if ('session' in data && session.value === undefined) keepSession(data.session)
    if ('ended' in data) dropSession()
  }
}

/** Neither the history nor a copied address may keep the code. */
const takeCode = (): string | undefined => {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1]
  if (code === undefined) return undefined
  history.replaceState(null, '', '#/')
  dispatchEvent(new HashChangeEvent('hashchange'))
  return code
}

const exchangeCode = async (code: string): Promise<void> => {
  try {
    const response = await fetch('/api/console/sessions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code }),
    })
    const body = await response.json()
    if (response.ok) keepSession(body.session)
    else dropSession(`${body.error.message} ${body.error.hint ?? ''}`)
  } catch {
    dropSession('The daemon does not answer. Run deputy open again.')
  }
}

const askOtherTabs = (): Promise<void> =>
  new Promise(resolve => {
    const timer = setTimeout(resolve, TABS_ANSWER_MS)
    tabs.onmessage = ({ data }: MessageEvent<Message>) => {
      if (!('session' in data)) return
      keepSession(data.session)
      clearTimeout(timer)
      resolve()
    }
    tabs.postMessage({ wanted: true } satisfies Message)
  })
