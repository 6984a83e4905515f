import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../free-port.ts'
import { removeDirectory } from '../remove-directory.ts'
import type { TestEngine } from './engines.ts'

/** A registry on loopback. With a login it takes any user name with the password. */
export interface TestRegistry {
  /** `127.0.0.1:PORT`. */
  readonly host: string
  /** Stores an image of the engine under `HOST/NAME`. */
  push(engine: TestEngine, image: string, name: string): Promise<void>
  close(): Promise<void>
}

export const USER = 'tester'
export const PASSWORD = 'sesame'
/** `htpasswd -nbB -C 4 tester sesame` */
const HTPASSWD = 'tester:$2b$04$abcdefghijklmnopqrstuuinwY/tkBVrn3xrxQI/TgnMHhkvl85RW'

export interface Registries {
  readonly open: TestRegistry
  /** With a login. */
  readonly closed: TestRegistry
}

export const createRegistries = async (): Promise<Registries> => ({
  open: await createRegistry(),
  closed: await createRegistry({ login: true }),
})

const createRegistry = async ({ login = false } = {}): Promise<TestRegistry> => {
  const directory = mkdtempSync(join(tmpdir(), 'registry-'))
  const host = `127.0.0.1:${await freePort()}`
  const passwords = join(directory, 'htpasswd')
  writeFileSync(passwords, `${HTPASSWD}\n`)
  writeFileSync(
    join(directory, 'config.yml'),
    `version: 0.1
log: { level: error, accesslog: { disabled: true } }
storage: { filesystem: { rootdirectory: ${join(directory, 'data')} } }
http: { addr: '${host}' }
${login ? `auth: { htpasswd: { realm: test, path: ${passwords} } }` : ''}
`,
  )
  const child: ChildProcess = spawn(
    'sh',
    ['-c', 'exec docker-registry serve "$0/config.yml" >"$0/log" 2>&1', directory],
    { stdio: 'ignore' },
  )
  for (let tries = 0; ; tries++) {
    const answer = await fetch(`http://${host}/v2/`).catch(() => undefined)
    if (answer !== undefined) break
    if (tries > 600 || child.exitCode !== null)
      throw new Error(
        `the registry does not start: ${readFileSync(join(directory, 'log'), 'utf8').slice(-1000)}`,
      )
    await sleep(100)
  }
  const auth = Buffer.from(
    JSON.stringify({ username: USER, password: PASSWORD, serveraddress: host }),
  ).toString('base64url')
  return {
    host,
    push: async (engine, image, name) => {
      const repo = encodeURIComponent(`${host}/${name.split(':')[0]}`)
      const tag = name.split(':')[1]
      const tagged = await engine.api('POST', `/v1.40/images/${image}/tag?repo=${repo}&tag=${tag}`)
      const path = `/v1.40/images/${host}/${name.split(':')[0]}/push?tag=${tag}`
      const pushed = await engine.api('POST', path, undefined, { 'x-registry-auth': auth })
      if (tagged.status >= 300 || pushed.status >= 300 || /"error"/.test(pushed.text))
        throw new Error(`cannot push ${name}: ${tagged.text} ${pushed.text}`)
      await engine.api('DELETE', `/v1.40/images/${host}/${name}?noprune=1`)
    },
    close: async () => {
      const ended = once(child, 'exit')
      child.kill()
      await ended
      removeDirectory(directory)
    },
  }
}
