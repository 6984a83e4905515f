import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readCache, writeCache } from '../../../src/proxmox/catalogue/catalogue-cache.ts'
import { extractSchema } from '../../../src/proxmox/catalogue/extract-schema.ts'
import { createCatalogue } from '../../../src/proxmox/catalogue/load-catalogue.ts'
import { normalise } from '../../../src/proxmox/catalogue/normalise.ts'
import { compilePattern } from '../../../src/proxmox/catalogue/perl-pattern.ts'

const TREE = [
  {
    path: '/guests',
    info: {
      GET: {
        name: 'list',
        description: 'Lists the guests.',
        permissions: { user: 'all' },
        parameters: { additionalProperties: 0 },
      },
    },
    children: [
      {
        path: '/guests/{id}',
        children: [
          {
            path: '/guests/{id}/settings',
            info: {
              PUT: {
                name: 'change',
                description: 'Changes the settings\n of a guest.',
                permissions: { check: ['perm', '/guests/{id}', ['Guest.Change']] },
                parameters: {
                  additionalProperties: 0,
                  properties: {
                    id: { type: 'integer', minimum: '100', maximum: '999', description: 'The id.' },
                    cores: { type: 'integer', optional: 1, minimum: 1 },
                    'net[n]': {
                      type: 'string',
                      optional: 1,
                      format: { model: { default_key: 1 }, bridge: {} },
                    },
                    name: { type: 'string', optional: 1, maxLength: 5, pattern: '(?^i:[a-z]{,16})' },
                    strange: { type: 'string', optional: 1, pattern: '(?<=a)[[:alpha:]]++' },
                    mode: { type: 'string', optional: 1, enum: ['on', 'off'] },
                    empty: { type: 'string', optional: 1, enum: null },
                    live: { type: 'boolean', optional: 1 },
                    delete: { type: 'string', optional: 1, format: 'x-list' },
                    must: { type: 'string', optional: 0 },
                  },
                },
                returns: { type: 'null' },
              },
            },
          },
        ],
      },
      { path: '/guests/special', info: { GET: { name: 'special', parameters: {} } } },
    ],
  },
]
const catalogue = createCatalogue(normalise(TREE), { source: 'host', version: '9.1' })
const problems = (params: Record<string, unknown>) =>
  catalogue.check('PUT', '/guests/100/settings', { must: 'x', ...params })

const isError = ({ severity }: { severity: string }) => severity === 'error'

describe('the schema of a host', () => {
  it('is read without running the file', () => {
    const file = `const apiSchema = ${JSON.stringify(TREE, null, 3)}\n;\n\nlet viewer = []\n;throw new Error('never')`
    expect(extractSchema(file)).toEqual(TREE)
    expect(extractSchema('var pveapi = [1]\n;')).toEqual([1])
    expect(() => extractSchema('nothing')).toThrow('no schema')
    expect(() => extractSchema('const a = [1,\n;')).toThrow('not JSON')
  })

  it('survives whatever shape it has', () => {
    expect(normalise(null)).toEqual([])
    expect(normalise([null, 7, { path: '/a', info: { GET: null, PATCH: {} } }])).toHaveLength(1)
  })

  it('knows which calls only root may make', () => {
    expect(catalogue.describe('get', '/guests/special')?.rootOnly).toBe(true)
    expect(catalogue.describe('GET', '/guests')?.rootOnly).toBe(false)
  })

  it('prefers a literal path over a placeholder, and takes templates', () => {
    expect(catalogue.describe('GET', '/guests/special')?.name).toBe('special')
    expect(catalogue.describe('PUT', '/guests/{id}/settings')?.name).toBe('change')
    expect(catalogue.describe('PUT', '/api2/json/guests/5/settings')?.description).toBe(
      'Changes the settings of a guest.',
    )
    expect(catalogue.describe('POST', '/guests')).toBeUndefined()
  })
})

describe('search', () => {
  it('wants every word and puts the best first', () => {
    expect(catalogue.search('guest settings').map(hit => hit.path)).toEqual(['/guests/{id}/settings'])
    expect(catalogue.search('put cores').map(hit => hit.path)).toEqual(['/guests/{id}/settings'])
    expect(catalogue.search('guests')[0]?.path).toBe('/guests')
    expect(catalogue.search('nonsense')).toEqual([])
    expect(catalogue.search('')).toEqual([])
  })
})

describe('checks before a call', () => {
  it('finds nothing against a good call', () => {
    expect(
      problems({
        cores: 2,
        net0: 'virtio',
        net31: 'x',
        name: 'ABC',
        mode: 'on',
        live: true,
        delete: ['a', 'b'],
        strange: '9',
        empty: 'x',
      }),
    ).toEqual([])
    expect(problems({ cores: '2', live: 0 })).toEqual([])
    // As Perl reads them, and as a form carries them.
    expect(problems({ cores: '+2', name: '\u{1F600}'.repeat(5) }).filter(isError)).toEqual([])
    expect(problems({ cores: [2], mode: null, name: [] })).toEqual([])
  })

  it.each([
    [{ cores: 0 }, 'cores', 'at least 1'],
    [{ cores: 'two' }, 'cores', 'whole number'],
    [{ live: 'true' }, 'live', '1 or 0'],
    [{ mode: 'maybe' }, 'mode', 'one of on, off'],
    [{ name: 'abcdefg' }, 'name', 'more than 5'],
    [{ cores: [1, 2] }, 'cores', 'not a list'],
    [{ cores: [0] }, 'cores', 'at least 1'],
    [{ cores: {} }, 'cores', 'object'],
  ])('refuses %o', (params, param, words) => {
    expect(problems(params)).toMatchObject([
      { param, severity: 'error', problem: expect.stringContaining(words) },
    ])
  })

  it('misses what is required, but not what the path gives', () => {
    expect(catalogue.check('PUT', '/guests/100/settings', {})).toMatchObject([{ param: 'must' }])
    expect(catalogue.check('PUT', '/guests/100/settings', { must: null })).toMatchObject([{ param: 'must' }])
    expect(catalogue.check('PUT', '/guests/{id}/settings', { must: 'x' })).toMatchObject([{ param: 'id' }])
  })

  it('is unsure about what it does not know, and names the nearest', () => {
    expect(problems({ core: 1 })).toMatchObject([
      { param: 'core', severity: 'unsure', problem: expect.stringContaining("did you mean 'cores'?") },
    ])
    expect(problems({ 'net[n]': 1 })).toMatchObject([{ severity: 'unsure' }])
    expect(catalogue.check('GET', '/guests/100/settings', {})).toMatchObject([
      { severity: 'unsure', problem: expect.stringContaining('PUT') },
    ])
    expect(problems({ name: 'a-b' })).toMatchObject([{ param: 'name', severity: 'unsure' }])
  })

  it('leaves everything to the host when there is no catalogue', () => {
    expect(createCatalogue([], { source: 'none', version: '' }).check('PUT', '/anything', { x: 1 })).toEqual(
      [],
    )
  })
})

it('translates the patterns of Perl that have an equal and gives up on the others', () => {
  expect(compilePattern('(?^:[a-z]{,3})')?.test('abc')).toBe(true)
  expect(compilePattern('(?^i:ABC)')?.test('abc')).toBe(true)
  expect(compilePattern('\\Aab\\z')?.test('ab')).toBe(true)
  expect(compilePattern('a|b')?.test('ab')).toBe(false)
  expect(compilePattern('(?>x)')).toBeUndefined()
  expect(compilePattern('[[:alpha:]]')).toBeUndefined()
  expect(compilePattern('(')).toBeUndefined()
})

describe('the cache', () => {
  const VERSION = { version: '9.1.1', release: '9.1', repoid: 'abc', major: 9, minor: 1 }
  let dir = ''
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'catalogue-'))
  })
  afterEach(() => rm(dir, { recursive: true, force: true }))

  it('gives back what was written, for that version alone', async () => {
    await writeCache(dir, VERSION, catalogue.operations)
    expect(await readCache(dir, VERSION)).toEqual(catalogue.operations)
    expect(await readCache(dir, { ...VERSION, repoid: 'abd' })).toBeUndefined()
    expect(await readdir(dir)).toHaveLength(1)
  })

  it('treats a damaged file as none', async () => {
    await writeCache(dir, VERSION, catalogue.operations)
    const [name] = await readdir(dir)
    await writeFile(join(dir, name!), '[{"verb":')
    expect(await readCache(dir, VERSION)).toBeUndefined()
  })
})
