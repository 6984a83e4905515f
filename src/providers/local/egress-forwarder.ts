import { writeSync } from 'node:fs'
import { connect, createServer } from 'node:net'

// Entry point that runs inside a sandbox: forwards connections from a loopback port to the proxy's socket.
const [port = '', socketPath = ''] = process.argv.slice(2)

const server = createServer({ allowHalfOpen: true }, client => {
  const proxy = connect({ path: socketPath, allowHalfOpen: true })
  for (const [from, to] of [
    [client, proxy],
    [proxy, client],
  ] as const) {
    from.on('error', () => to.destroy())
    from.pipe(to)
  }
})
// Report on the runner's status channel (fd 3): the job starts when the forwarder listens.
server.listen(Number(port), '127.0.0.1', () => writeSync(3, `proxied ${process.pid}\n`))
