import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { CLI } from '../../support/daemon.ts'
import { findTools, runTool } from '../../support/e2e-tools.ts'
import { removeDirectory } from '../../support/remove-directory.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const { tools, reason } = findTools()
const home = mkdtempSync(join(tmpdir(), 'deputy-plugin-'))
const env = { ...process.env, HOME: home, MCP_TIMEOUT: '120000' }
afterAll(async () => {
  await runTool(process.execPath, [CLI, 'daemon', 'stop'], { env })
  removeDirectory(home)
})

describe.skipIf(!tools)(`the plugin${reason ? ` (skipped: ${reason})` : ''}`, () => {
  const claude = (...args: string[]) => runTool(tools!.claude, args, { env, cwd: ROOT })

  it('passes the strict check of Claude Code, with the profile of its directory', async () => {
    const { status, stdout, stderr } = await claude(
      'plugin',
      'validate',
      ROOT,
      '--strict',
      '--profile',
      'directory',
    )
    expect(`${stdout}${stderr}`).toContain('Validation passed')
    expect(status).toBe(0)
  })

  it('installs from its marketplace with all skills, subagents and the server', async () => {
    expect((await claude('plugin', 'marketplace', 'add', ROOT)).status).toBe(0)
    expect((await claude('plugin', 'install', 'deputy@deputy')).status).toBe(0)
    const { stdout } = await claude('plugin', 'details', 'deputy')
    expect(stdout).toMatch(/Skills \(3\)/)
    expect(stdout).toMatch(/Agents \(7\)/)
    expect(stdout).toMatch(/MCP servers \(1\)/)
    const list = await claude('mcp', 'list')
    expect(list.stdout).toMatch(/deputy.*✔ Connected/)
  })

  it('has a manifest for bundles that mcpb accepts', async () => {
    const { status, stdout, stderr } = await runTool(tools!.node, [
      tools!.mcpb,
      'validate',
      join(ROOT, 'mcpb/manifest.json'),
    ])
    expect(`${stdout}${stderr}`).toContain('passes')
    expect(status).toBe(0)
  })
})
