import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { publint } from 'publint'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findTools, runTool } from '../../support/e2e-tools.ts'
import { removeDirectory } from '../../support/remove-directory.ts'
import { requireOrSkip } from '../../support/require.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const directory = mkdtempSync(join(tmpdir(), 'deputy-package-'))
const env = { ...process.env, DEPUTY_HOME: join(directory, 'home'), DEPUTY_HTTP: 'false' }
const stage = join(directory, 'stage')
const bin = (name: string): string => join(stage, 'installed/node_modules/.bin', name)

const online = await run('npm', ['ping'], { timeout: 20_000 }).then(
  () => undefined,
  () => 'npm reaches no registry',
)
const skip = requireOrSkip(online)

interface LockEntry {
  resolved?: string
  dev?: boolean
  devOptional?: boolean
  hasInstallScript?: boolean
}

const lock = (): Record<string, LockEntry> =>
  JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages

describe('the package', () => {
  it('has nothing that publint would complain about', async () => {
    const { messages } = await publint({ pkgDir: ROOT, strict: true })
    expect(messages).toEqual([])
  })

  it('runs no scripts of anybody when it is installed', () => {
    const scripted = Object.entries(lock()).filter(
      ([path, entry]) => path !== '' && entry.hasInstallScript && !entry.dev && !entry.devOptional,
    )
    expect(scripted.map(([path]) => path)).toEqual([])
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    expect(Object.keys(scripts).filter(name => /^(pre|post)?install$/.test(name))).toEqual([])
  })

  it('records no host in its lock file', () => {
    expect(Object.values(lock()).flatMap(entry => entry.resolved ?? [])).toEqual([])
  })
})

const { tools, reason } = findTools()

describe.skipIf(skip || !tools)(`packed and installed elsewhere${reason ? ` (${reason})` : ''}`, () => {
  let made: string[] = []
  let files: string[] = []

  beforeAll(async () => {
    mkdirSync(stage)
    const { status, stdout, stderr } = await runTool('sh', [join(ROOT, 'scripts/pack.sh'), directory], {
      env: { ...process.env, STAGE: stage, MCPB: `${tools!.node} ${tools!.mcpb}` },
      timeoutMs: 580_000,
    })
    expect(status, stderr).toBe(0)
    made = stdout.trim().split('\n')
    const list = await run('tar', ['-tzf', made[0]!], { maxBuffer: 16 * 1024 * 1024 })
    files = list.stdout.split('\n').map(path => path.replace(/^package\//, ''))
  }, 600_000)

  afterAll(async () => {
    await run(bin('deputy'), ['daemon', 'stop'], { env }).catch(() => {})
    removeDirectory(directory)
  })

  it('holds the product and its papers, and neither sources nor tests', () => {
    for (const path of [
      'dist/cli/main.js',
      'README.md',
      'LICENSE',
      'CHANGELOG.md',
      'SECURITY.md',
      'package.json',
    ])
      expect(files).toContain(path)
    expect(files.filter(path => /^(src|test|bench|scripts|\.ci)\/|\.map$/.test(path))).toEqual([])
  })

  it('has a shim that loads no file later, since an upgrade replaces the package while jobs run', () => {
    expect(files.filter(path => path.startsWith('dist/shim/'))).toEqual(['dist/shim/shim.js'])
    const text = readFileSync(join(ROOT, 'dist/shim/shim.js'), 'utf8')
    const imports = [...text.matchAll(/^import .*?from ["'](.*?)["']|\bimport\(["'](.*?)["']\)/gm)]
    expect(
      imports.map(([, named, loaded]) => named ?? loaded).filter(from => !from!.startsWith('node:')),
    ).toEqual([])
  })

  it('is a tarball and a bundle that claims the platform whose native code it has', () => {
    expect(made.every(existsSync)).toBe(true)
    expect(made.map(path => path.slice(directory.length + 1))).toEqual([
      expect.stringMatching(/^deputy-mcp-.*\.tgz$/),
      `deputy-${process.platform}-${process.arch}.mcpb`,
    ])
    const { compatibility } = JSON.parse(readFileSync(join(stage, 'unpacked/manifest.json'), 'utf8'))
    expect(compatibility.platforms).toEqual([process.platform])
    const native = readdirSync(join(stage, 'unpacked/node_modules/@libsql'))
    expect(native.some(name => name.startsWith(`${process.platform}-${process.arch}`))).toBe(true)
  })

  it('has its command and the names of the servers it replaces', () => {
    expect(readdirSync(join(stage, 'installed/node_modules/.bin'))).toEqual(
      expect.arrayContaining(['deputy', 'mcp-delegation-server', 'cluster-execution-mcp', 'proxmox-mcp']),
    )
  })

  it('tells its version, examines the computer and runs a job', async () => {
    const version = await run(bin('deputy'), ['--version'], { env })
    expect(version.stdout.trim()).toBe(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version)
    const { stdout } = await run(bin('deputy'), ['doctor', '--json'], { env }).catch(error => error)
    const report = JSON.parse(stdout)
    expect(report.checks.every((check: { status: string }) => check.status === 'ok')).toBe(true)
    if (!report.ok) return
    const job = await run(bin('deputy'), ['run', '--', 'echo hello from elsewhere'], { env })
    expect(job.stdout).toBe('hello from elsewhere\n')
  })

  it('shakes hands with an MCP client over mcp-delegation-server', async () => {
    const answers = await converse([
      {
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: {
          protocolVersion: '2025-11-25',
          capabilities: {},
          clientInfo: { name: 'test', version: '1' },
        },
      },
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', id: 2, method: 'tools/list' },
    ])
    expect(answers.get(1)).toMatchObject({ result: { serverInfo: { name: expect.any(String) } } })
    expect(JSON.stringify(answers.get(2))).toContain('"submit_job"')
  })
})

const converse = (messages: readonly object[]): Promise<Map<number, unknown>> =>
  new Promise((resolve, reject) => {
    const server = spawn(bin('mcp-delegation-server'), [], { env, stdio: ['pipe', 'pipe', 'inherit'] })
    const answers = new Map<number, unknown>()
    let buffer = ''
    server.stdout.on('data', chunk => {
      buffer += chunk
      const lines = buffer.split('\n')
      buffer = lines.pop() ?? ''
      for (const line of lines) {
        const message = JSON.parse(line)
        if (typeof message.id === 'number') answers.set(message.id, message)
      }
      if (answers.has(2)) server.stdin.end()
    })
    server.once('error', reject)
    server.once('close', () => resolve(answers))
    for (const message of messages) server.stdin.write(`${JSON.stringify(message)}\n`)
  })
