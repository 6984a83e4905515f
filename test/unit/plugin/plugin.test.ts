import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { annotationsOf } from '../../../src/mcp/tools/proxmox/mcp-tool.ts'
import { TABLE } from '../../../src/mcp/tools/proxmox/table/toolset-table.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const text = (path: string) => readFileSync(join(ROOT, path), 'utf8')
interface Manifest {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly mcpName?: string
  readonly files?: string[]
  readonly userConfig?: Record<string, { sensitive?: boolean }>
  readonly user_config?: Record<string, unknown>
}
const json = (path: string) => JSON.parse(text(path)) as Manifest
const frontmatter = (path: string) => {
  const [, head, body] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(text(path)) ?? []
  return { head: parse(head ?? '') as Record<string, unknown>, body: body ?? '' }
}

const table = new Map(TABLE.flatMap(({ tools }) => tools).map(tool => [tool.name, tool]))
const ALWAYS = new Map([
  ['use_toolset', true],
  ['list_nodes', true],
  ['get_cluster_resources', true],
  ['proxmox_api_search', true],
  ['proxmox_api_describe', true],
  ['proxmox_api_call', false],
])

describe('what ships for agent clients', () => {
  const version = json('package.json').version

  it('has one version everywhere', () => {
    expect(json('.claude-plugin/plugin.json').version).toBe(version)
    expect(json('server.json')).toMatchObject({
      version,
      packages: [{ version, identifier: json('package.json').name }],
    })
    expect(json('mcpb/manifest.json').version).toBe(version)
  })

  it('is named in the registry as the package says', () => {
    expect(json('package.json').mcpName).toBe(json('server.json').name)
    expect(json('server.json').description.length).toBeLessThanOrEqual(100)
  })

  it('offers no server to clients that only open the repository', () => {
    for (const path of ['.mcp.json', '.cursor/mcp.json', '.vscode/mcp.json'])
      expect(existsSync(join(ROOT, path)), path).toBe(false)
  })

  it('has a way to trust the certificate of a Proxmox host everywhere', () => {
    for (const path of ['.claude-plugin/plugin.json', 'mcpb/manifest.json', 'server.json', 'compose.yaml'])
      expect(text(path)).toContain('PROXMOX_SSL_FINGERPRINT')
  })

  it('is in the package', () => {
    expect(json('package.json').files).toEqual(
      expect.arrayContaining(['skills', 'agents', '.claude-plugin', 'server.json']),
    )
  })

  it('asks for every setting it passes on', () => {
    const wanted = (path: string) =>
      [...text(path).matchAll(/\$\{user_config\.(\w+)\}/g)].map(match => match[1])
    expect(Object.keys(json('.claude-plugin/plugin.json').userConfig!)).toEqual(
      expect.arrayContaining(wanted('.claude-plugin/plugin.json')),
    )
    expect(Object.keys(json('mcpb/manifest.json').user_config!)).toEqual(
      expect.arrayContaining(wanted('mcpb/manifest.json')),
    )
    for (const [name, option] of Object.entries(json('.claude-plugin/plugin.json').userConfig!)) {
      expect(option.sensitive === true, name).toBe(name.includes('secret'))
    }
  })
})

describe.each(readdirSync(join(ROOT, 'agents')))('the subagent %s', file => {
  const { head, body } = frontmatter(join('agents', file))
  const tools = String(head.tools)
    .split(', ')
    .map(name => name.replace(/^mcp__plugin_deputy_deputy__/, ''))

  it('is named, described and instructed', () => {
    expect(`${head.name}.md`).toBe(file)
    expect(String(head.description).length).toBeGreaterThan(80)
    expect(body.length).toBeGreaterThan(400)
  })

  it('has MCP tools that exist, each once, and no other tool', () => {
    expect(
      String(head.tools)
        .split(', ')
        .every(name => name.startsWith('mcp__plugin_deputy_deputy__')),
    ).toBe(true)
    expect(tools.filter(name => !table.has(name) && !ALWAYS.has(name))).toEqual([])
    expect(new Set(tools).size).toBe(tools.length)
  })

  it('loads skills that ship with it', () => {
    const skills = String(head.skills).split(', ')
    expect(skills.length).toBeGreaterThan(0)
    expect(skills.filter(name => !existsSync(join(ROOT, 'skills', name, 'SKILL.md')))).toEqual([])
  })

  it('names no tool it does not have', () => {
    const named = [...body.matchAll(/`((?:proxmox_|list_nodes|get_cluster)\w*)/g)].map(match => match[1]!)
    expect(named.filter(name => !tools.includes(name))).toEqual([])
  })

  it('changes nothing if it is the monitor', () => {
    const changing = tools.filter(name => !(ALWAYS.get(name) ?? annotationsOf(table.get(name)!).readOnlyHint))
    if (file === 'monitor.md') expect(changing).toEqual([])
    else expect(changing.length).toBeGreaterThan(0)
  })
})

it.each([
  ['monitor.md', ['proxmox_cluster_health']],
  ['cluster-admin.md', ['proxmox_guest_migrate', 'proxmox_cluster_health']],
])('the subagent %s has the tools %j', (file, wanted) => {
  for (const tool of wanted) expect(text(join('agents', file))).toContain(`__${tool}`)
})

describe.each(readdirSync(join(ROOT, 'skills')))('the skill %s', name => {
  const { head, body } = frontmatter(join('skills', name, 'SKILL.md'))

  it('follows the format', () => {
    expect(head.name).toBe(name)
    expect(name).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/)
    expect(String(head.description).length).toBeLessThanOrEqual(1024)
    expect(body.split('\n').length).toBeLessThan(500)
  })

  it('links to what is there, and all that is there is linked', () => {
    const links = [...body.matchAll(/\]\((references\/[^)]+)\)/g)].map(match => match[1]!)
    expect(links.filter(link => !existsSync(join(ROOT, 'skills', name, link)))).toEqual([])
    const files = readdirSync(join(ROOT, 'skills', name, 'references')).map(file => `references/${file}`)
    expect(files.filter(file => !links.includes(file))).toEqual([])
  })

  it('speaks of tools and actions that exist', () => {
    const pages = [
      body,
      ...readdirSync(join(ROOT, 'skills', name, 'references')).map(file =>
        text(join('skills', name, 'references', file)),
      ),
    ]
    const named = pages.flatMap(page => [...page.matchAll(/\b(proxmox_[a-z_]+)(?: *\{action: "(\w+)")?/g)])
    const aliases = text('skills/proxmox-mcp-tools/references/proxmox-admin.md')
    const wrong = named.filter(([, tool = '', action]) => {
      const known = table.get(tool)
      if (!known) return !ALWAYS.has(tool) && !aliases.includes(`## ${tool}\n`) && !NOT_TOOLS.has(tool)
      return action !== undefined && !(action in known.actions)
    })
    expect(wrong.map(match => match[0])).toEqual([])
  })
})

/** `proxmox_*` in a text. */
const NOT_TOOLS = new Set(['proxmox_'])

it('keeps what is needed to build the image, and nothing else, in its context', () => {
  const copied = [...text('Dockerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(match =>
    match[1]!.split(' '),
  )
  const allowed = text('.dockerignore')
    .split('\n')
    .filter(line => line.startsWith('!'))
    .map(line => line.slice(1))
  expect(copied.sort()).toEqual(allowed.sort())
  expect(copied.filter(path => !existsSync(join(ROOT, path)))).toEqual([])
  const { build } = JSON.parse(text('package.json')).scripts
  const built = [...`"${build}"`.matchAll(/(?:tsc -p|node|vite build) (\S+?)(?=[ "])/g)].map(
    match => match[1]!,
  )
  expect(built.filter(project => !copied.includes(project))).toEqual([])
  expect(text('Dockerfile')).toMatch(/^USER node$/m)
})
