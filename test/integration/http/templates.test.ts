import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Control, startControl } from '../../support/http/control.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.close())

const put = (name: string, manifest: unknown, send = control.socket, headers = {}) =>
  send({ method: 'PUT', path: `/api/templates/${name}`, body: JSON.stringify(manifest), headers })
const list = async () =>
  (await control.socket('/api/templates')).json<{ templates: readonly { name: string }[] }>().templates

it('saves, lists, replaces and deletes manifests by name, as YAML that only the user can read', async () => {
  expect(await list()).toEqual([])
  expect((await put('nightly', { task: 'one\ntwo\n', timeout: 60 })).status).toBe(204)
  expect((await put('a.b-c_d', { artifacts: ['out'] })).status).toBe(204)
  expect((await put('nightly', { task: 'three\nfour\n' })).status).toBe(204)
  expect(await list()).toEqual([
    { name: 'a.b-c_d', manifest: { artifacts: ['out'] } },
    { name: 'nightly', manifest: { task: 'three\nfour\n' } },
  ])
  const file = join(control.templates.directory, 'nightly.yaml')
  expect(readFileSync(file, 'utf8')).toBe('task: |\n  three\n  four\n')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  for (const status of [204, 404])
    expect((await control.socket({ method: 'DELETE', path: '/api/templates/a.b-c_d' })).status).toBe(status)
  expect((await list()).map(({ name }) => name)).toEqual(['nightly'])
})

it('tells which file is no manifest, and shows the others', async () => {
  mkdirSync(control.templates.directory, { recursive: true })
  writeFileSync(join(control.templates.directory, 'broken.yaml'), 'task: [')
  writeFileSync(join(control.templates.directory, 'text.yaml'), 'just text')
  writeFileSync(join(control.templates.directory, 'notes.txt'), 'not one')
  expect(await list()).toEqual(
    expect.arrayContaining([
      { name: 'broken', problem: expect.stringContaining('line 1') },
      { name: 'text', problem: 'it is not a mapping' },
    ]),
  )
  expect((await list()).map(({ name }) => name)).not.toContain('notes')
})

it.each(['.hidden', '..%2Fescape', 'a%2Fb', 'a'.repeat(65), '%20'])('refuses the name %s', async name => {
  expect((await put(name, { task: 'x' })).status).toBe(400)
})

it('refuses what is no object', async () => {
  expect((await put('list', ['task'])).status).toBe(400)
})

it('is not changed with a token, which an agent may have', async () => {
  for (const token of [control.tokens.full, control.tokens.read]) {
    const headers = { authorization: `Bearer ${token}` }
    expect((await put('injected', { task: 'x' }, control.tcp, headers)).status).toBe(403)
    expect((await control.tcp({ path: '/api/templates', headers })).status).toBe(200)
  }
  expect((await list()).map(({ name }) => name)).not.toContain('injected')
})
