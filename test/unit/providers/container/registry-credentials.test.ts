import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { registryAuth } from '../../../../src/providers/container/registry-credentials.ts'

const homeWith = (config: unknown): string => {
  const home = mkdtempSync(join(tmpdir(), 'registry-'))
  mkdirSync(join(home, '.docker'))
  writeFileSync(join(home, '.docker/config.json'), JSON.stringify(config))
  return home
}

const login = async (registry: string, home: string, env: NodeJS.ProcessEnv = {}): Promise<unknown> => {
  const auth = await registryAuth(registry, { env, home })
  return auth === undefined ? undefined : JSON.parse(Buffer.from(auth, 'base64url').toString('utf8'))
}

it('takes credentials from the docker configuration', async () => {
  const auth = Buffer.from('me:pass:word').toString('base64')
  const home = homeWith({
    auths: { 'r.io': { auth }, 'https://index.docker.io/v1/': { identitytoken: 't' } },
  })
  expect(await login('r.io', home)).toEqual({ username: 'me', password: 'pass:word', serveraddress: 'r.io' })
  expect(await login('docker.io', home)).toMatchObject({ identitytoken: 't' })
  expect(await login('other.io', home)).toBeUndefined()
})

it('asks the credential helper of a registry, with its name on stdin', async () => {
  const home = homeWith({ credHelpers: { 'r.io': 'test' }, credsStore: 'missing' })
  const program = join(home, 'docker-credential-test')
  writeFileSync(program, `#!/bin/sh\nread -r s\nprintf '{"Username":"u-%s","Secret":"p-%s"}' "$s" "$1"\n`)
  chmodSync(program, 0o755)
  const env = { PATH: `${home}:${process.env.PATH}` }
  expect(await login('r.io', home, env)).toMatchObject({ username: 'u-r.io', password: 'p-get' })
  await expect(login('other.io', home, env)).rejects.toThrow('Cannot run docker-credential-missing')
})
