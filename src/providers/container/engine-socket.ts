import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { AppError } from '../../jobs/errors.ts'
import type { EngineAddress } from './engine-address.ts'

/** Opens a connection to the engine. Errors arrive as `error` events of the returned stream. */
export const openSocket = ({ url, tls }: EngineAddress): Duplex => {
  const [, scheme = '', rest = ''] = /^([a-z]+):\/\/(.+)$/.exec(url) ?? []
  switch (scheme) {
    case 'unix':
    case 'npipe':
      return connect({ path: scheme === 'unix' ? rest : rest.replaceAll('/', '\\') })
    case 'tcp':
    case 'http':
    case 'https': {
      const { hostname: host, port } = new URL(`http://${rest}`)
      if (tls === undefined && scheme !== 'https') return connect({ host, port: Number(port || 2375) })
      return connectTls({ host, port: Number(port || 2376), servername: host, ...tls })
    }
    case 'ssh':
      return dialStdio(rest)
    default:
      throw new AppError('invalid', `Unknown address of a container engine '${url}'.`, {
        hint: 'Use unix:///path/to/socket, tcp://host:port or ssh://user@host in DOCKER_HOST.',
      })
  }
}

/** As the docker CLI does it: the engine's socket over the stdin and stdout of ssh. */
const dialStdio = (destination: string): Duplex => {
  const [, user, host = '', port] = /^(?:([^@/]+)@)?([^:/]+)(?::(\d+))?/.exec(destination) ?? []
  const child = spawn(
    'ssh',
    [
      ...['-o', 'BatchMode=yes', '-o', 'ConnectTimeout=30', '-T'],
      ...(user === undefined ? [] : ['-l', user]),
      ...(port === undefined ? [] : ['-p', port]),
      ...['--', host, 'docker', 'system', 'dial-stdio'],
    ],
    { stdio: ['pipe', 'pipe', 'pipe'] },
  )
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-1000)
  })
  const socket = Duplex.from({ readable: child.stdout, writable: child.stdin })
  child.once('error', error => socket.destroy(error))
  child.once('close', code => {
    if (code !== 0) socket.destroy(new Error(said.trim() || `ssh ended with ${code}`))
  })
  socket.once('close', () => child.kill())
  return socket
}
