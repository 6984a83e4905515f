import { isIP } from 'node:net'

/**
 * A name that ssh can only take for a host: nothing here may begin with "-" or hold a character with a meaning
 * to ssh, ssh_config or a shell.
 */
export const isHost = (value: string): boolean =>
  value.length <= 253 && (isIP(value) !== 0 || (HOST_NAME.test(value) && !value.includes('..')))

export const isUser = (value: string): boolean => USER_NAME.test(value)

/** The `[user@]host[:port]` list of ProxyJump. */
export const isJump = (value: string): boolean =>
  value.split(',').every(hop => parseDestination(hop) !== undefined)

export interface Destination {
  user?: string
  host: string
  port?: number
}

/** Reads `user@host:port`; IPv6 addresses take brackets when a port follows. */
export const parseDestination = (value: string): Destination | undefined => {
  const at = value.lastIndexOf('@')
  const user = at < 0 ? undefined : value.slice(0, at)
  const rest = value.slice(at + 1)
  const bracketed = /^\[([0-9A-Fa-f:.]+)\](?::(\d{1,5}))?$/.exec(rest)
  const plain = /^([^:[\]]+)(?::(\d{1,5}))?$/.exec(rest)
  const host = bracketed?.[1] ?? plain?.[1] ?? (isIP(rest) === 6 ? rest : undefined)
  if (host === undefined || !isHost(host)) return undefined
  if (user !== undefined && !isUser(user)) return undefined
  const digits = bracketed?.[2] ?? plain?.[2]
  const port = digits === undefined ? undefined : Number(digits)
  if (port !== undefined && (port < 1 || port > 65535)) return undefined
  return { host, ...(user !== undefined && { user }), ...(port !== undefined && { port }) }
}

/** An IP address, with a port or without: what a resolver can be told to ask. */
export const isNameServer = (value: string): boolean => isIP(parseDestination(value)?.host ?? '') !== 0

const HOST_NAME = /^[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?$/
const USER_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}\$?$/
