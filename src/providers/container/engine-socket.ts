import { spawn } from 'node:child_process'
import { connect, isIP } from 'node:net'
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
      const name = isIP(host) ? {} : { servername: host }
      return connectTls({ host, port: Number(port || 2376), ...name, ...tls })
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
  // An ssh that has ended also breaks its pipes. Only its end is reported: by then it has said why.
  child.stdin.on('error', () => {})
  const socket = new Duplex({
    read: () => void child.stdout.resume(),
    write: (chunk, _, done) => void child.stdin.write(chunk, () => done()),
    final: done => void child.stdin.end(() => done()),
    destroy: (error, done) => {
      child.kill()
      done(error)
    },
  })
  child.stdout.on('data', chunk => {
    if (!socket.push(chunk)) child.stdout.pause()
  })
  child.once('error', error => socket.destroy(error))
  child.once('close', code => {
    if (code === 0) socket.push(null)
    else socket.destroy(new Error(said.trim() || `ssh ended with ${code}`))
  })
  return socket
}
