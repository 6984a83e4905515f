import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DemoScene } from './jobs.ts'

export interface Stage extends DemoScene {
  readonly deputyHome: string
  strike(): Promise<void>
}

/** A temporary home, a file to steal and a server to reach for the demo's jobs; `strike` removes them. */
export const buildStage = async (): Promise<Stage> => {
  const deputyHome = await mkdtemp(join(tmpdir(), 'deputy-demo-'))
  const secretFile = join(deputyHome, 'a-file-of-yours.txt')
  await writeFile(secretFile, 'for your eyes only\n', { mode: 0o644 })
  const server = createServer(socket => socket.end('hello from outside\n'))
  server.unref()
  const port = await listen(server)
  return {
    deputyHome,
    userHome: homedir(),
    secretFile,
    port,
    strike: async () => {
      server.close()
      await rm(deputyHome, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
    },
  }
}

const listen = (server: Server): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
