import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DemoTargets } from './jobs.ts'

export interface Fixture extends DemoTargets {
  readonly deputyHome: string
  remove(): Promise<void>
}

/** Creates a temporary home, a file to read and a server to reach for the jobs of the demo; `remove` deletes them. */
export const createFixture = async (): Promise<Fixture> => {
  const deputyHome = await mkdtemp(join(tmpdir(), 'deputy-demo-'))
  const secretFile = join(deputyHome, 'a-file-of-yours.txt')
  await writeFile(secretFile, 'for your eyes only\n', { mode: 0o644 })
  const server = createServer(socket => socket.end('hello from outside\n'))
  server.unref()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    deputyHome,
    userHome: homedir(),
    secretFile,
    port,
    remove: async () => {
      server.close()
      await rm(deputyHome, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
    },
  }
}
