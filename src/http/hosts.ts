import { AppError } from '../jobs/errors.ts'

/**
 * Protects the daemon from web pages in the user's browser. The Host header has the name that the browser used:
 * unknown names are refused (DNS rebinding). The Origin header names the page: only pages of this computer or of an
 * allowed proxy may send requests.
 */
export const createHostCheck = (allowed: readonly string[]) => {
  const names = new Set(allowed.map(entry => entry.trim().toLowerCase()).filter(entry => entry !== ''))
  const isKnown = (host: string): boolean => {
    const authority = parseAuthority(host)
    if (authority === undefined) return false
    return isLoopback(authority.name) || names.has(authority.name) || names.has(host.toLowerCase())
  }

  return (headers: Pick<Headers, 'get'>): void => {
    const host = headers.get('host')
    if (host === null || !isKnown(host))
      throw new AppError('denied', `The Host '${(host ?? '').slice(0, 100)}' is not allowed.`, {
        hint: 'Use http://127.0.0.1, or add the host of your reverse proxy to MCP_ALLOWED_HOSTS.',
      })
    const origin = headers.get('origin')
    if (origin !== null && !isKnown(originHost(origin)))
      throw new AppError('denied', `The Origin '${origin.slice(0, 100)}' is not allowed.`, {
        hint: 'Deputy refuses requests of other web pages. Add the host of your own page to MCP_ALLOWED_HOSTS.',
      })
  }
}

const AUTHORITY = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i

const parseAuthority = (host: string): { name: string } | undefined => {
  const match = AUTHORITY.exec(host)
  return match === null ? undefined : { name: match[1]!.toLowerCase() }
}

const isLoopback = (name: string): boolean =>
  name === 'localhost' || name === '[::1]' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name)

/** `null` (sandboxed frames, files) and other schemes have no host; an empty host is never allowed. */
const originHost = (origin: string): string => /^https?:\/\/([^/?#@\\]+)$/i.exec(origin)?.[1] ?? ''
