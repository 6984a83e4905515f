import { once } from 'node:events'
import { chmod, lstat, mkdir, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname } from 'node:path'
import type { Duplex } from 'node:stream'
import { getRequestListener } from '@hono/node-server'
import { isListening } from '../client/daemon-info.ts'
import { AppError } from '../jobs/errors.ts'
import { closeServer } from './close-server.ts'
import { badRequest } from './respond.ts'
import type { HttpEnv } from './route.ts'

/** The request handler of a listener: the control app. */
export interface Fetcher {
  fetch(request: Request, env: HttpEnv): Response | Promise<Response>
}

export interface Listener {
  /** Accepts no new connections, lets requests finish until the deadline, then closes them. Idempotent. */
  close(deadlineMs?: number): Promise<void>
}

type OnUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

export interface UnixOptions {
  /** Takes over a connection that upgrades to another protocol, such as the MCP bridge. */
  readonly onUpgrade?: OnUpgrade
  /** Called when the socket was deleted and created again, or with the error why that failed. */
  onSocketDeleted?(error?: unknown): void
}

/** How often the socket is checked: cleaners of /tmp and of runtime directories may delete it. */
const CHECK_MS = 1000

/**
 * Listens on the Unix socket. Only its owner can reach it: the directory is 0700 and the socket 0600. If the socket
 * is deleted, it is created again; connections through the old one stay open.
 */
export const listenUnix = async (
  app: Fetcher,
  socketPath: string,
  options: UnixOptions = {},
): Promise<Listener> => {
  let current = await bindSocket(app, socketPath, options)
  // The servers of deleted sockets keep their connections until the daemon stops.
  const closers = [current.close]
  let busy: Promise<void> | undefined
  const checkSocket = async (): Promise<void> => {
    const id = await fileId(socketPath)
    if (id !== undefined && id === current.id) return
    try {
      current = await bindSocket(app, socketPath, options)
      closers.push(current.close)
      options.onSocketDeleted?.()
    } catch (error) {
      options.onSocketDeleted?.(error)
    }
  }
  const timer = setInterval(() => {
    busy ??= checkSocket().finally(() => {
      busy = undefined
    })
  }, CHECK_MS)
  timer.unref()
  return {
    close: async deadlineMs => {
      clearInterval(timer)
      await busy
      await Promise.all(closers.map(close => close(deadlineMs)))
    },
  }
}

const bindSocket = async (app: Fetcher, socketPath: string, { onUpgrade }: UnixOptions) => {
  await ownDirectory(dirname(socketPath))
  if (await isListening(socketPath))
    throw new AppError('conflict', `Another daemon already listens on ${socketPath}.`, {
      hint: 'deputy daemon status shows it.',
    })
  // Left by a daemon that was killed.
  await rm(socketPath, { force: true })
  const server = serverFor(app, 'socket')
  if (onUpgrade !== undefined) server.on('upgrade', onUpgrade)
  const close = closeServer(server)
  await once(server.listen(socketPath), 'listening')
  await chmod(socketPath, 0o600)
  return { close, id: await fileId(socketPath) }
}

const fileId = (path: string): Promise<string | undefined> =>
  lstat(path).then(
    ({ dev, ino }) => `${dev}/${ino}`,
    () => undefined,
  )

export interface LoopbackListener extends Listener {
  readonly url: string
  readonly port: number
  /** Set when the wanted port was not available, with the reason for the log. */
  readonly moved: { readonly wanted: number; readonly reason: string } | undefined
}

/** Listens on TCP. If the port is busy, another one is used: a busy port must not stop the daemon from starting. */
export const listenLoopback = async (
  app: Fetcher,
  { host, port, onUpgrade }: { readonly host: string; readonly port: number; readonly onUpgrade?: OnUpgrade },
): Promise<LoopbackListener> => {
  const server = serverFor(app, 'tcp')
  if (onUpgrade !== undefined) server.on('upgrade', onUpgrade)
  const close = closeServer(server)
  let moved: LoopbackListener['moved']
  try {
    await once(server.listen({ host, port, exclusive: true }), 'listening')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (port === 0 || (code !== 'EADDRINUSE' && code !== 'EACCES')) throw error
    moved = { wanted: port, reason: code === 'EACCES' ? 'not permitted' : 'in use' }
    await once(server.listen({ host, port: 0 }), 'listening')
  }
  const address = server.address() as AddressInfo
  const name = address.family === 'IPv6' ? `[${address.address}]` : address.address
  return { close, url: `http://${name}:${address.port}`, port: address.port, moved }
}

const serverFor = (app: Fetcher, listener: 'socket' | 'tcp'): Server => {
  const handle = getRequestListener(
    (request, { incoming, outgoing }) =>
      // Only HTTP/1 servers are created here; the adapter's types include HTTP/2.
      'stream' in incoming || 'stream' in outgoing
        ? badRequest(new Error('HTTP/2 is not supported'))
        : app.fetch(request, { listener, incoming, outgoing }),
    { errorHandler: badRequest, hostname: 'localhost' },
  )
  return createServer(
    // Uploads may take long, and a keep-alive connection must not close while its client sends the next request.
    { requestTimeout: 3_600_000, headersTimeout: 60_000, keepAliveTimeout: 60_000 },
    handle,
  )
}

/** The directory may be in /tmp, where another user could have created it first. */
const ownDirectory = async (directory: string): Promise<void> => {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const info = await lstat(directory)
  if (!info.isDirectory() || (process.getuid !== undefined && info.uid !== process.getuid()))
    throw new AppError('denied', `${directory} belongs to another user.`, {
      hint: `Remove it, or set DEPUTY_HOME to a directory of your own.`,
    })
  await chmod(directory, 0o700)
}
