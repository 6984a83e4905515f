import { mkdirSync, mkdtempSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { connect } from '../../../src/client/daemon-client.ts'
import { ensureDaemon } from '../../../src/client/ensure-daemon.ts'
import { resolveHome } from '../../../src/config/home.ts'
import { VERSION } from '../../../src/version.ts'
import { MAIN, until } from '../../support/cli.ts'
import { removeDirectory } from '../../support/remove-directory.ts'

const directory = mkdtempSync(join(tmpdir(), 'deputy-ensure-'))
const env = { ...process.env, DEPUTY_HOME: directory, DEPUTY_HTTP: 'false' }
const home = resolveHome(env)
const ensure = (more: { entry?: string; deadlineMs?: number } = {}) =>
  ensureDaemon(home, { version: VERSION, env, entry: MAIN, ...more })

let other: Server | undefined

/** Stands in for a daemon of another version. */
const serveAs = async (answer: { version: string; idle: boolean }): Promise<{ stops: () => number }> => {
  let stops = 0
  other = createServer((request, response) => {
    if (request.method === 'POST') {
      stops += 1
      response.writeHead(answer.idle ? 202 : 409).end('{}')
      if (answer.idle) other?.close()
    } else response.end(JSON.stringify({ pid: process.pid, ...answer }))
  })
  mkdirSync(dirname(home.socket), { recursive: true })
  await new Promise<void>(resolve => other?.listen(home.socket, resolve))
  return { stops: () => stops }
}

afterEach(async () => {
  if (other?.listening) await new Promise(resolve => other?.close(resolve))
  other = undefined
  const client = connect(home)
  await client.stopDaemon().catch(() => {})
  await until(
    () =>
      client.daemon().then(
        () => false,
        () => true,
      ),
    'the daemon to end',
  )
  client.close()
  removeDirectory(directory)
})

const versionNow = async (): Promise<string> => {
  const client = connect(home)
  try {
    return (await client.daemon()).version
  } finally {
    client.close()
  }
}

describe('making sure of a daemon', () => {
  it('starts one where there is none, and is content with it afterwards', async () => {
    await ensure()
    expect(await versionNow()).toBe(VERSION)
    await ensure({ entry: '/nowhere/never-started.js' })
  })

  it('replaces an older one that has nothing to do', async () => {
    const old = await serveAs({ version: '0.0.1', idle: true })
    await ensure()
    expect(old.stops()).toBe(1)
    expect(await versionNow()).toBe(VERSION)
  })

  it('leaves an older one alone while it has work', async () => {
    const old = await serveAs({ version: '0.0.1', idle: false })
    await ensure({ entry: '/nowhere/never-started.js' })
    expect(old.stops()).toBe(0)
  })

  it('uses a newer one as it is', async () => {
    const newer = await serveAs({ version: '99.0.0', idle: true })
    await ensure({ entry: '/nowhere/never-started.js' })
    expect(newer.stops()).toBe(0)
  })

  it('takes over a socket that a killed daemon left behind', async () => {
    mkdirSync(dirname(home.socket), { recursive: true })
    writeFileSync(home.socket, '')
    await ensure()
    expect(await versionNow()).toBe(VERSION)
  })

  it('shows the last words of one that cannot start', async () => {
    mkdirSync(home.configDir, { recursive: true })
    writeFileSync(home.configFile, 'limits: { runing: 3 }\n')
    await expect(ensure()).rejects.toThrow(
      /ended while starting[\s\S]*'limits.runing', did you mean 'running'\?/,
    )
  })

  it('rotates a large log, and reports when there can be none', async () => {
    mkdirSync(home.stateDir, { recursive: true })
    writeFileSync(home.log, Buffer.alloc(9 * 1024 * 1024))
    await ensure()
    expect(statSync(`${home.log}.1`).size).toBe(9 * 1024 * 1024)
    expect(statSync(home.log).size).toBeLessThan(100_000)
    const file = join(directory, 'file')
    writeFileSync(file, '')
    const impossible = resolveHome({ DEPUTY_HOME: file })
    const refused = ensureDaemon(impossible, { version: VERSION, env, entry: MAIN })
    await expect(refused).rejects.toMatchObject({
      code: 'denied',
      hint: expect.stringContaining('DEPUTY_HOME'),
    })
  })

  /** A daemon whose first processes end as told, one word a line, and whose next one starts. */
  const failingFirst = (...ends: readonly ('SIGKILL' | 'exit 0')[]): string => {
    mkdirSync(directory, { recursive: true })
    const starts = join(directory, 'starts')
    const entry = join(directory, 'failing-first.mjs')
    writeFileSync(
      entry,
      `import { appendFileSync, readFileSync } from 'node:fs'
appendFileSync(${JSON.stringify(starts)}, '.')
const end = ${JSON.stringify(ends)}[readFileSync(${JSON.stringify(starts)}).length - 1]
if (end === 'SIGKILL') process.kill(process.pid, 'SIGKILL')
if (end === 'exit 0') process.exit(0)
await import(${JSON.stringify(pathToFileURL(MAIN).href)})
`,
    )
    return entry
  }

  it('starts another when the first ones are killed during their start', async () => {
    await ensure({ entry: failingFirst('SIGKILL', 'SIGKILL') })
    expect(await versionNow()).toBe(VERSION)
  })

  it('starts another when the daemon that held the home is gone before it answered', async () => {
    // Exit status 0 says that another daemon holds the home; here it never answers.
    await ensure({ entry: failingFirst('exit 0', 'exit 0') })
    expect(await versionNow()).toBe(VERSION)
  })

  it('gives up on one that is killed again and again', async () => {
    const entry = join(directory, 'killed.mjs')
    mkdirSync(directory, { recursive: true })
    writeFileSync(entry, "process.kill(process.pid, 'SIGKILL')")
    await expect(ensure({ entry, deadlineMs: 5000 })).rejects.toThrow(/SIGKILL/)
  })

  it('gives up on one that never answers', async () => {
    const entry = join(directory, 'silent.mjs')
    mkdirSync(directory, { recursive: true })
    writeFileSync(entry, 'setTimeout(() => {}, 5000)')
    await expect(ensure({ entry, deadlineMs: 300 })).rejects.toMatchObject({ code: 'unavailable' })
  })
})
