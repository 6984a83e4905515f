import { isIP } from 'node:net'

/**
 * Accepts only names that ssh cannot mistake for something else: no leading "-", and no character with a meaning to
 * ssh, ssh_config or a shell.
 */
export const isHostName = (value: string): boolean =>
  value.length <= 253 && (isIP(value) !== 0 || (HOST_NAME.test(value) && !value.includes('..')))

export const isUserName = (value: string): boolean => USER_NAME.test(value)

/** The `[user@]host[:port]` list of ProxyJump. */
export const isJumpList = (value: string): boolean =>
  value.split(',').every(hop => parseDestination(hop) !== undefined)

export interface Destination {
  user?: string
  host: string
  port?: number
}

/** Parses `user@host:port`. An IPv6 address needs brackets when a port follows. */
export const parseDestination = (value: string): Destination | undefined => {
  const at = value.lastIndexOf('@')
  const user = at < 0 ? undefined : value.slice(0, at)
  const rest = value.slice(at + 1)
  const bracketed = /^\[([0-9A-Fa-f:.]+)\](?::(\d{1,5}))?$/.exec(rest)
  const plain = /^([^:[\]]+)(?::(\d{1,5}))?$/.exec(rest)
  const host = bracketed?.[1] ?? plain?.[1] ?? (isIP(rest) === 6 ? rest : undefined)
  if (host === undefined || !isHostName(host)) return undefined
  if (user !== undefined && !isUserName(user)) return undefined
  const digits = bracketed?.[2] ?? plain?.[2]
  const port = digits === undefined ? undefined : Number(digits)
  if (port !== undefined && (port < 1 || port > 65535)) return undefined
  return { host, ...(user !== undefined && { user }), ...(port !== undefined && { port }) }
}

/** An IP address with an optional port. */
export const isNameServer = (value: string): boolean => isIP(parseDestination(value)?.host ?? '') !== 0

const HOST_NAME = /^[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?$/
const USER_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}\$?$/
