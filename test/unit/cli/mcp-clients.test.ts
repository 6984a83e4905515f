import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CLIENTS } from '../../../src/cli/mcp-clients/clients.ts'
import { addText, addToJson } from '../../../src/cli/mcp-clients/edit-file.ts'

const entry = { command: 'deputy', args: ['mcp'] }
const scratch = (): string => join(mkdtempSync(join(tmpdir(), 'deputy-clients-')), 'deep', 'mcp.json')
const change = { key: 'mcpServers', name: 'deputy', entry }

describe('the configuration of a client', () => {
  it('is made where there is none, for its owner alone', async () => {
    const file = scratch()
    expect(await addToJson(file, change)).toBe(true)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ mcpServers: { deputy: entry } })
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('keeps everything else, its indentation and its permissions', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'deputy-clients-')), 'mcp.json')
    writeFileSync(file, '{\n\t"theme": "dark",\n\t"mcpServers": {"other": {"command": "x"}}\n}\n', {
      mode: 0o640,
    })
    expect(await addToJson(file, change)).toBe(true)
    const text = readFileSync(file, 'utf8')
    expect(JSON.parse(text)).toEqual({
      theme: 'dark',
      mcpServers: { other: { command: 'x' }, deputy: entry },
    })
    expect(text).toContain('\n\t"theme"')
    expect(statSync(file).mode & 0o777).toBe(0o640)
  })

  it('is not written a second time', async () => {
    const file = scratch()
    await addToJson(file, change)
    expect(await addToJson(file, change)).toBe(false)
  })

  it.each(['{ // a comment\n}', '[]', '{"mcpServers": []}', 'not json'])(
    'is left alone when it is %s',
    async text => {
      const file = join(mkdtempSync(join(tmpdir(), 'deputy-clients-')), 'mcp.json')
      writeFileSync(file, text)
      await expect(addToJson(file, change)).rejects.toThrow(/was not changed/)
      expect(readFileSync(file, 'utf8')).toBe(text)
    },
  )

  it('is appended to where it is TOML, once', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'deputy-clients-')), 'config.toml')
    writeFileSync(file, 'model = "x"')
    const section = CLIENTS.codex.text({ name: 'deputy', ...entry })
    expect(await addText(file, section)).toBe(true)
    expect(await addText(file, section)).toBe(false)
    expect(readFileSync(file, 'utf8')).toBe(
      'model = "x"\n\n[mcp_servers.deputy]\ncommand = "deputy"\nargs = ["mcp"]\n',
    )
  })
})
