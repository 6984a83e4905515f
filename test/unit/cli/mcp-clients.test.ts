import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CLIENTS, type Place } from '../../../src/cli/mcp-clients/clients.ts'
import { editFile } from '../../../src/cli/mcp-clients/edit-file.ts'
import { removeJsonServer, setJsonServer } from '../../../src/cli/mcp-clients/json-servers.ts'
import { removeTomlTable, setTomlTable } from '../../../src/cli/mcp-clients/toml-servers.ts'

const entry = { command: 'deputy', args: ['mcp'] }
const scratch = (): string => mkdtempSync(join(tmpdir(), 'deputy-clients-'))
const server = { file: 'mcp.json', key: 'mcpServers', name: 'deputy' }
const set = (text: string, value: object = entry) => setJsonServer(text, server, value)

describe('the file of a client', () => {
  it('is made where there is none, for its owner alone, and deleted when nothing is left', async () => {
    const file = join(scratch(), 'deep', 'mcp.json')
    expect(await editFile(file, text => set(text))).toBe('added')
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ mcpServers: { deputy: entry } })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(await editFile(file, text => removeJsonServer(text, server))).toBe('removed')
    expect(existsSync(file)).toBe(false)
  })

  it('keeps its permissions, and a link stays a link', async () => {
    const directory = scratch()
    mkdirSync(join(directory, 'dotfiles'))
    const real = join(directory, 'dotfiles', 'mcp.json')
    writeFileSync(real, '{}', { mode: 0o640 })
    const file = join(directory, 'mcp.json')
    symlinkSync(real, file)
    expect(await editFile(file, text => set(text))).toBe('added')
    expect(lstatSync(file).isSymbolicLink()).toBe(true)
    expect(readFileSync(real, 'utf8')).toContain('deputy')
    expect(statSync(real).mode & 0o777).toBe(0o640)
  })
})

describe('a JSON file', () => {
  const commented = `{
\t// my theme
\t"theme": "dark",
\t"mcpServers": {
\t\t"other": { "command": "x" } // keep me
\t}
}
`

  it('keeps comments, order and indentation, and is as before after the removal', () => {
    const added = set(commented)
    expect(added.change).toBe('added')
    expect(added.text).toContain('\t// my theme\n\t"theme": "dark",')
    expect(added.text).toContain('"other": { "command": "x" }')
    expect(added.text).toContain('// keep me')
    expect(added.text).toContain('\t\t"deputy": {')
    expect(removeJsonServer(added.text!, server)).toEqual({ change: 'removed', text: commented })
  })

  it.each([
    '{ "mcpServers": { "other": { "command": "x" } } }',
    '{\n  "mcpServers": {\n    "other": { "command": "x" }, // trailing\n  },\n}\n',
    '{\r\n    "theme": "dark"\r\n}\r\n',
    '{\n  "a": [1, 2], /* both */ "b": {}\n}',
  ])('is as before after the removal: %j', text => {
    const added = set(text)
    expect(set(added.text!).change).toBe('unchanged')
    expect(removeJsonServer(added.text!, server)).toEqual({ change: 'removed', text })
  })

  it('says whether the entry was there already', () => {
    const { text } = set(commented)
    expect(set(text!)).toEqual({ change: 'unchanged', text })
    const updated = set(text!, { command: 'deputy', args: ['mcp', '--read-only'] })
    expect(updated).toMatchObject({ change: 'updated', text: expect.stringContaining('--read-only') })
    expect(removeJsonServer(commented, server)).toEqual({ change: 'absent', text: commented })
  })

  it.each(['[]', '{"mcpServers": []}', 'not json', '{"a": }'])('is left alone when it is %s', text => {
    expect(() => set(text)).toThrow(/was not changed/)
  })

  it('of opencode lists servers where the file lists them', () => {
    const opencode = { file: 'opencode.json', key: 'mcp', name: 'deputy' }
    expect(JSON.parse(setJsonServer('{"mcp":{"servers":{}}}', opencode, entry).text!)).toEqual({
      mcp: { servers: { deputy: entry } },
    })
    expect(JSON.parse(setJsonServer('{}', opencode, entry).text!)).toEqual({ mcp: { deputy: entry } })
  })
})

describe('a TOML file', () => {
  const config = 'model = "x" # mine\n\n[mcp_servers.other]\ncommand = "y"\n'
  const table = 'mcp_servers.deputy'

  it('gets a table, which is updated in its place and removed without a trace', () => {
    const added = setTomlTable(config, table, { ...entry, env: { DEPUTY_HOME: '/x' } })
    expect(added).toEqual({
      change: 'added',
      text: `${config}\n[mcp_servers.deputy]\ncommand = "deputy"\nargs = ["mcp"]\n\n[mcp_servers.deputy.env]\nDEPUTY_HOME = "/x"\n`,
    })
    expect(removeTomlTable(added.text!, table)).toEqual({ change: 'removed', text: config })
    const next = '[mcp_servers.other]\ncommand = "y"\n'
    const between = `[mcp_servers.deputy]\ncommand = "old"\nargs = [\n  "mcp",\n]\n\n# about the next\n${next}`
    expect(setTomlTable(between, table, entry)).toEqual({
      change: 'updated',
      text: `[mcp_servers.deputy]\ncommand = "deputy"\nargs = ["mcp"]\n\n# about the next\n${next}`,
    })
    expect(setTomlTable(setTomlTable(config, table, entry).text!, table, entry).change).toBe('unchanged')
    expect(removeTomlTable(config, table)).toEqual({ change: 'absent', text: config })
    expect(removeTomlTable(setTomlTable('', table, entry).text!, table).text).toBeUndefined()
  })
})

it.each<[string, NodeJS.Platform, Record<string, string>, string]>([
  ['claude-desktop', 'darwin', {}, '/h/Library/Application Support/Claude/claude_desktop_config.json'],
  ['claude-desktop', 'linux', { XDG_CONFIG_HOME: '/c' }, '/c/Claude/claude_desktop_config.json'],
  ['cursor', 'linux', {}, '/h/.cursor/mcp.json'],
  ['vscode', 'linux', {}, '/h/.config/Code/User/mcp.json'],
  ['windsurf', 'linux', {}, '/h/.codeium/windsurf/mcp_config.json'],
  ['gemini', 'linux', {}, '/h/.gemini/settings.json'],
  ['codex', 'linux', {}, '/h/.codex/config.toml'],
  ['codex', 'linux', { CODEX_HOME: '/x' }, '/x/config.toml'],
  ['copilot', 'linux', {}, '/h/.copilot/mcp-config.json'],
  ['zed', 'darwin', {}, '/h/.config/zed/settings.json'],
  ['opencode', 'linux', { XDG_CONFIG_HOME: '/c' }, '/c/opencode/opencode.json'],
  ['cline', 'linux', {}, '/h/.cline/data/settings/cline_mcp_settings.json'],
  ['jetbrains', 'linux', {}, '/h/.junie/mcp/mcp.json'],
])('%s on %s with %j reads %s', (name, platform, env, file) => {
  const place: Place = { platform, env: { HOME: '/h', ...env } }
  expect(CLIENTS[name]?.file?.(place)).toBe(file)
})
