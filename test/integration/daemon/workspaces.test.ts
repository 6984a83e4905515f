import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createTestCli } from '../../support/cli.ts'
import { newHome, type TestDaemon, useDaemons } from '../../support/daemon.ts'

const start = useDaemons()
let files: string

beforeEach(() => {
  files = realpathSync(mkdtempSync(join(tmpdir(), 'deputy-files-')))
})

afterEach(() => rmSync(files, { recursive: true }))

const manifest = (path: string) => ({ task: 'true', workspace: { path } })

/** A client on TCP with the token that gives full rights; it says it is the command line. */
const overTcp = async ({ client, home }: TestDaemon, path: string, body: unknown): Promise<Response> => {
  const { url } = await client.daemon()
  return fetch(`${url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${readFileSync(join(home.stateDir, 'token'), 'utf8').trim()}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'x-deputy-origin': 'cli',
      'x-deputy-directory': encodeURIComponent(files),
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'submit_job',
    },
    body: JSON.stringify(body),
  })
}

describe('a workspace of the user', () => {
  it('may be any directory but those of Deputy', async () => {
    const { client, home, directory } = await start()
    symlinkSync(home.stateDir, join(files, 'link'))
    await client.submit(manifest(files))
    for (const path of [
      home.stateDir,
      home.configDir,
      home.runtimeDir,
      directory,
      '/',
      join(files, 'link'),
    ]) {
      mkdirSync(home.configDir, { recursive: true })
      await expect(client.submit(manifest(path)), path).rejects.toMatchObject({
        code: 'denied',
        message: expect.stringContaining("holds Deputy's own files"),
      })
    }
  })

  it('is refused by the command line, too, which packs it itself', async () => {
    const cli = createTestCli()
    try {
      for (const directory of ['state', '.']) {
        mkdirSync(join(cli.home, directory), { recursive: true })
        const { code, stderr } = await cli.run(['run', '--workspace', join(cli.home, directory), '--', 'ls'])
        expect(stderr).toContain("holds Deputy's own files")
        expect(code).toBe(2)
      }
    } finally {
      await cli.close()
    }
  })
})

describe('a workspace that a client on TCP names', () => {
  it('is only ever one of those in the configuration, whatever the client says of itself', async () => {
    const directory = newHome()
    mkdirSync(join(directory, 'config'))
    mkdirSync(join(files, 'allowed'))
    writeFileSync(
      join(directory, 'config/config.yaml'),
      `workspaces: { allow: [${JSON.stringify(join(files, 'allowed'))}] }`,
    )
    const daemon = await start({ directory })
    expect((await overTcp(daemon, '/api/jobs', manifest(join(files, 'allowed')))).status).toBe(201)
    const refused = await overTcp(daemon, '/api/jobs', manifest(files))
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('workspaces: {')])
  })

  it('is no root that an MCP client claims', async () => {
    const daemon = await start()
    const answer = await overTcp(daemon, '/mcp', {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name: 'submit_job',
        arguments: { manifest: manifest(files) },
        inputResponses: { roots: { roots: [{ uri: `file://${files}` }] } },
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'far', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': { roots: {} },
        },
      },
    })
    expect(await answer.text()).toContain('This client may not read')
  })
})
