import { writeSync } from 'node:fs'
import { connect, createServer } from 'node:net'

// Runs inside a sandbox, alone in its file: carries connections from a port of its loopback to the proxy's socket.
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
// Fd 3 is the runner's way to report: the job starts when we listen.
server.listen(Number(port), '127.0.0.1', () => writeSync(3, `proxied ${process.pid}\n`))
