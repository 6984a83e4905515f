import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { newHome, removeDirectory } from '../../support/daemon.ts'
import { type Answer, type Bridge, envelope, startBridge, stopDaemonOf } from '../../support/mcp/bridge.ts'

let directory: string
let files: string
let bridges: Bridge[]

beforeEach(() => {
  directory = newHome()
  files = realpathSync(mkdtempSync(join(tmpdir(), 'deputy-files-')))
  for (const name of ['home', 'project/sub', 'project-2', 'other'])
    mkdirSync(join(files, name), { recursive: true })
  writeFileSync(join(files, 'project/sub/a.txt'), 'hello')
  bridges = []
})

afterEach(async () => {
  for (const bridge of bridges) bridge.process.kill('SIGKILL')
  await Promise.all(bridges.map(bridge => bridge.ended))
  await stopDaemonOf(directory)
  removeDirectory(directory)
  rmSync(files, { recursive: true })
})

/** A client whose user lives in `home` and started it in `cwd`. */
const open = (cwd: string): Bridge => {
  const bridge = startBridge({ directory, cwd, env: { HOME: join(files, 'home') } })
  bridges.push(bridge)
  return bridge
}

const configure = (text: string) => {
  mkdirSync(join(directory, 'config'), { recursive: true })
  writeFileSync(join(directory, 'config/config.yaml'), text)
}

const call = (path: string) => ({
  name: 'submit_job',
  arguments: { manifest: { task: 'true', workspace: { path } } },
})

const submit = async (bridge: Bridge, path: string): Promise<string> =>
  told(await bridge.ask('tools/call', call(path)))

/** `accepted`, or the words of the refusal. */
const told = ({ result, error }: Answer): string => {
  if (error !== undefined) return error.message
  const { isError, content } = result as { isError?: boolean; content: { text: string }[] }
  return isError === true ? content.map(({ text }) => text).join('\n') : 'accepted'
}

describe('a workspace that an MCP client names', () => {
  it('may be the directory the client was started in, and what is below it', async () => {
    const bridge = open(join(files, 'project'))
    await bridge.initialize()
    expect(await submit(bridge, join(files, 'project'))).toBe('accepted')
    expect(await submit(bridge, join(files, 'project/sub'))).toBe('accepted')
  })

  it('may be nothing else, and the refusal names the line that allows it', async () => {
    symlinkSync(join(files, 'other'), join(files, 'project/link'))
    const bridge = open(join(files, 'project'))
    await bridge.initialize()
    const refusal = await submit(bridge, join(files, 'other'))
    expect(refusal).toContain(`This client may not read the directory '${join(files, 'other')}'.`)
    expect(refusal).toContain(join(directory, 'config/config.yaml'))
    expect(refusal).toContain(`workspaces: { allow: ["${join(files, 'other')}"] }`)
    for (const path of ['project/../other', 'project/link', 'project-2', 'nowhere', 'home', '.'])
      expect(await submit(bridge, `${files}/${path}`), path).toContain('This client may not read')
    expect(await submit(bridge, '/etc')).toContain('This client may not read')
  })

  it('may be a directory the user listed', async () => {
    configure(`workspaces: { allow: ["${join(files, 'other')}"] }`)
    const bridge = open(join(files, 'project'))
    await bridge.initialize()
    expect(await submit(bridge, join(files, 'other'))).toBe('accepted')
    expect(await submit(bridge, join(files, 'project-2'))).toContain(
      `workspaces: { allow: ${JSON.stringify([join(files, 'other'), join(files, 'project-2')])} }`,
    )
  })

  it.each([
    ['/', '/'],
    ['the home', 'home'],
    ['above the home', '.'],
  ])('is not allowed by a client that was started in %s', async (_, cwd) => {
    mkdirSync(join(files, 'home/project'))
    const bridge = open(cwd === '/' ? '/' : join(files, cwd))
    await bridge.initialize()
    expect(await submit(bridge, join(files, 'home/project'))).toContain('This client may not read')
  })

  it("is never Deputy's own directory, nor one around it, wherever the client was started", async () => {
    configure(`workspaces: { allow: ["${directory}", "/tmp"] }`)
    symlinkSync(directory, join(files, 'project/deputy'))
    const bridge = open(join(files, 'project'))
    await bridge.initialize()
    for (const path of [
      directory,
      `${directory}/state`,
      `${directory}/state/cluster`,
      `${directory}/config`,
      `${directory}/run`,
    ])
      expect(await submit(bridge, path), path).toContain("holds Deputy's own files")
    expect(await submit(bridge, join(files, 'project/deputy/state'))).toContain("holds Deputy's own files")
    expect(await submit(bridge, '/tmp')).toContain("holds Deputy's own files")
  })

  it('may be a root of a client of an older revision', async () => {
    const bridge = open('/')
    await bridge.initialize({ roots: {} })
    const answer = bridge.ask('tools/call', call(join(files, 'other/')))
    const asked = await bridge.next('the question for roots', message => message.method === 'roots/list')
    bridge.send({ id: asked.id, result: { roots: [{ uri: pathToFileURL(join(files, 'other')).href }] } })
    expect(told(await answer)).toBe('accepted')
  })

  it('may be a root of a client of the current revision', async () => {
    const bridge = open('/')
    const ask = (more: object) =>
      bridge.ask('tools/call', envelope({ ...call(join(files, 'other')), ...more }, { roots: {} }))
    const { result } = await ask({})
    expect(result).toMatchObject({
      resultType: 'input_required',
      inputRequests: { roots: { method: 'roots/list' } },
    })
    const answer = (path: string) => ({
      inputResponses: { roots: { roots: [{ uri: pathToFileURL(path).href }] } },
    })
    expect(told(await ask(answer(join(files, 'project'))))).toContain('This client may not read')
    expect(told(await ask(answer('/')))).toContain('This client may not read')
    expect(told(await ask(answer(join(files, 'other'))))).toBe('accepted')
  })

  it('is not allowed by roots that a client did not declare', async () => {
    const bridge = open('/')
    const { result } = await bridge.ask('tools/call', envelope(call(join(files, 'other'))))
    expect(result).toMatchObject({ isError: true })
  })
})
