import { execFile } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { serveAgentTransport } from '../../../../src/providers/proxmox/agent-transport.ts'
import type { AgentLink } from '../../../../src/providers/proxmox/guest-agent.ts'
import { silentLogger } from '../../../../src/proxmox/logger.ts'
import { systemClock } from '../../../../src/proxmox/proxmox-clock.ts'
import { until } from '../../../support/engine.ts'

let root: string
let box: string
let server: Server
let ending: AbortController
let served: Promise<void>
const seen: { method: string; url: string; bytes: number }[] = []
/** What happens while a request is with the listener. */
let meanwhile: () => void

const agentOf = (directory: string): AgentLink => ({
  isUp: async () => true,
  exec: ([program = '', ...args]) =>
    new Promise(resolve => {
      execFile(
        program,
        args.map(word => word.replaceAll('/run/deputy', `${directory}/run/deputy`)),
        { encoding: 'buffer', maxBuffer: 16 * 2 ** 20 },
        (error, stdout, stderr) => {
          resolve({ code: error ? Number(error.code) : 0, out: stdout, err: stderr })
        },
      )
    }),
  writeFile: async (file, content) => writeFileSync(`${directory}${file}`, content),
})

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'deputy-mailbox-'))
  box = join(root, 'run/deputy/box')
  mkdirSync(box, { recursive: true })
  seen.length = 0
  meanwhile = () => {}
  server = createServer(async (request, response) => {
    let bytes = 0
    for await (const chunk of request) bytes += (chunk as Buffer).length
    seen.push({ method: request.method!, url: request.url!, bytes })
    meanwhile()
    response.end(`${request.headers.authorization} had ${bytes}`)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  ending = new AbortController()
  served = serveAgentTransport({
    agent: agentOf(root),
    clock: systemClock,
    log: silentLogger,
    port: (server.address() as AddressInfo).port,
    signal: ending.signal,
  })
})

afterEach(async () => {
  ending.abort()
  await served.catch(() => {})
  await new Promise(resolve => server.close(resolve))
  rmSync(root, { recursive: true, force: true })
})

const post = (text: string): void => {
  writeFileSync(join(box, 'new'), text)
  renameSync(join(box, 'new'), join(box, 'request'))
}
const answer = async (): Promise<string> => {
  await until(() => existsSync(join(box, 'answer')), 'the answer', 20_000)
  return readFileSync(join(box, 'answer'), 'latin1')
}

describe('the letters of a machine without a network', () => {
  it('are taken to the listener, and the answer bears their name', async () => {
    post('POST jobs/a/output?offset=0 tok 12.1\nhello')
    expect(await answer()).toBe('200 12.1\nBearer tok had 5')
    expect(seen).toEqual([{ method: 'POST', url: '/guest/v1/jobs/a/output?offset=0', bytes: 5 }])
    expect(existsSync(join(box, 'request'))).toBe(false)
  })

  it('are not held in memory, however large they say they are', async () => {
    writeFileSync(join(box, 'new'), 'PUT jobs/a/files tok 12.1\n')
    truncateSync(join(box, 'new'), 2 ** 34)
    renameSync(join(box, 'new'), join(box, 'request'))
    expect(await answer()).toBe('413 12.1\n')
    expect(seen).toEqual([])
  })

  it('that were replaced meanwhile are not answered with what belongs to another', async () => {
    meanwhile = () => {
      meanwhile = () => {}
      post('POST jobs/a/exit?code=0 tok 13.2\nabc')
    }
    post('POST jobs/a/heartbeat tok 12.1\n')
    expect(await answer()).toBe('200 13.2\nBearer tok had 3')
    expect(seen.map(({ url }) => url)).toEqual(['/guest/v1/jobs/a/heartbeat', '/guest/v1/jobs/a/exit?code=0'])
  })

  it('that are none are refused without a call', async () => {
    post('DELETE ../../etc tok 12.1\n')
    expect(await answer()).toBe('400 12.1\n')
    expect(seen).toEqual([])
  })
})
