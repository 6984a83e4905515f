import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { resolveHome } from '../../../src/config/home.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { createSecrets } from '../../../src/config/resolve-secrets.ts'

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'deputy-config-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const load = (text: string | undefined, env: Record<string, string> = {}) => {
  const home = resolveHome({ DEPUTY_HOME: directory })
  if (text !== undefined) {
    mkdirSync(dirname(home.configFile), { recursive: true })
    writeFileSync(home.configFile, text)
  }
  return loadConfig(home, env)
}

describe('a home', () => {
  it('is one directory with DEPUTY_HOME, and the XDG directories otherwise', () => {
    expect(resolveHome({ DEPUTY_HOME: '/x' })).toMatchObject({
      stateDir: '/x/state',
      socket: '/x/run/deputy.sock',
      configFile: '/x/config/config.yaml',
    })
    expect(resolveHome({ HOME: '/home/u' })).toMatchObject({
      stateDir: '/home/u/.local/state/deputy',
      configDir: '/home/u/.config/deputy',
    })
    expect(
      resolveHome({ HOME: '/home/u', XDG_STATE_HOME: '/s', XDG_RUNTIME_DIR: '/run/user/1' }),
    ).toMatchObject({
      stateDir: '/s/deputy',
      socket: '/run/user/1/deputy/deputy.sock',
    })
  })

  it('that lies too deep for a socket has its socket elsewhere', () => {
    const home = resolveHome({ DEPUTY_HOME: `/${'deep/'.repeat(40)}` })
    expect(Buffer.byteLength(home.socket)).toBeLessThan(108)
    expect(home.stateDir.startsWith('/deep')).toBe(true)
  })
})

describe('the configuration', () => {
  it('needs no file', () => {
    const { config } = load(undefined)
    expect(config.defaults).toMatchObject({ timeout: 3600, cpu: 2, memory: '2G' })
    expect(config.host.allow).toBe(false)
  })

  it('takes the environment over the file over the default, and tells which', () => {
    const { config, settings } = load('defaults:\n  timeout: 10\n  cpu: 4\n', {
      DEFAULT_TIMEOUT: '20',
      MCP_ALLOWED_HOSTS: 'a.example, b.example',
    })
    expect(config.defaults).toMatchObject({ timeout: 20, cpu: 4 })
    expect(config.http.allowedHosts).toEqual(['a.example', 'b.example'])
    const origin = (path: string) => settings.find(setting => setting.path === path)?.origin
    expect(origin('defaults.timeout')).toBe('env DEFAULT_TIMEOUT')
    expect(origin('defaults.cpu')).toContain('config.yaml')
    expect(origin('defaults.memory')).toBe('default')
  })

  it.each([
    ['defaults:\n  tiemout: 5', /unknown setting 'defaults.tiemout', did you mean 'timeout'\?/],
    ['defualts: {}', /unknown setting 'defualts', did you mean 'defaults'\?/],
    ['defaults:\n  memory: lots', /'defaults.memory' is not a size/],
    ['secrets:\n  A: plain-text-secret', /'secrets.A'/],
    ['- a\n- b', /does not contain settings/],
    ['a: [', /cannot be read/],
  ])('refuses %j', (text, words) => {
    expect(() => load(text)).toThrow(words)
  })

  it.each([
    [undefined, { PROXMOX_INJECTION: 'floppy' }, /^Fix PROXMOX_INJECTION\. /],
    ['defaults:\n  memory: lots', { PROXMOX_INJECTION: 'floppy' }, /^Fix \/.*config\.yaml\. /],
    ['defaults:\n  tiemout: 5', {}, /^Fix \/.*config\.yaml\. /],
  ])('says of %j and %j where to correct it', (text, env, hint) => {
    expect(() => load(text, env)).toThrow(expect.objectContaining({ hint: expect.stringMatching(hint) }))
  })

  it('takes a PostgreSQL address as the store, and does not show its password', () => {
    const { config, settings } = load(undefined, { DEPUTY_STORE: 'postgres://me:hidden@db/jobs' })
    expect(config.store).toBe('postgres://me:hidden@db/jobs')
    expect(settings.find(({ path }) => path === 'store')).toEqual({
      path: 'store',
      value: 'postgres://me:***@db/jobs',
      origin: 'env DEPUTY_STORE',
    })
    expect(() => load('store: mysql://db')).toThrow(/'store' is not an address/)
  })

  it('refuses a variable that is no number', () => {
    expect(() => load(undefined, { DEFAULT_CPU: 'many' })).toThrow(/DEFAULT_CPU='many': expected a number/)
  })
})

describe('secrets', () => {
  const signal = new AbortController().signal

  it('come from the environment, from files and from commands', async () => {
    const file = join(directory, 'secret')
    writeFileSync(file, 'from-file\n')
    const secrets = createSecrets(
      { A: 'env:SOURCE', B: `file:${file}`, C: 'cmd:echo from cmd', D: ['printf', '%s', 'a b'] },
      { SOURCE: 'from-env' },
    )
    expect(await secrets.resolve(['A', 'B', 'C', 'D'], signal)).toEqual({
      A: 'from-env',
      B: 'from-file',
      C: 'from cmd',
      D: 'a b',
    })
  })

  it('that cannot be had are named, and their values are not', async () => {
    const secrets = createSecrets(
      {
        A: 'env:MISSING',
        B: 'file:/nonexistent',
        C: ['sh', '-c', 'echo hunter2 >&2; exit 3'],
        E: 'env:EMPTY',
      },
      { EMPTY: '' },
    )
    await expect(secrets.resolve(['A'], signal)).rejects.toThrow(
      /'A' is not in the daemon's environment as MISSING/,
    )
    await expect(secrets.resolve(['B'], signal)).rejects.toThrow(/\/nonexistent \(ENOENT\)/)
    await expect(secrets.resolve(['E'], signal)).rejects.toThrow(/is empty/)
    await expect(secrets.resolve(['Z'], signal)).rejects.toThrow(/'Z' is not configured/)
    const error = await secrets.resolve(['C'], signal).catch((thrown: unknown) => thrown)
    expect(String(error)).toContain("'sh' (3)")
    expect(JSON.stringify(error)).not.toContain('hunter2')
  })

  it('of the default sources are offered only when they are there', () => {
    const sources = { ANTHROPIC_API_KEY: 'env:ANTHROPIC_API_KEY', OTHER: 'file:/x' }
    expect(createSecrets(sources, {}).names()).toEqual(['OTHER'])
    expect(createSecrets(sources, { ANTHROPIC_API_KEY: 'k' }).names()).toEqual(['ANTHROPIC_API_KEY', 'OTHER'])
  })
})
