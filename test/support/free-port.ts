import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Below those that the kernel gives to outgoing connections and to listeners on port 0. */
const [FIRST, LAST] = [10_000, 32_000]

/**
 * A port of loopback that nobody has; for listeners that must come back to the same one. One that the kernel gives away
 * could be taken while its listener restarts.
 */
export const freePort = async (): Promise<number> => {
  for (let tries = 0; tries < 100; tries++) {
    const port = randomInt(FIRST, LAST)
    if (await isFree(port)) return port
  }
  throw new Error(`no free port from ${FIRST} to ${LAST}`)
}

const isFree = (port: number): Promise<boolean> =>
  new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
