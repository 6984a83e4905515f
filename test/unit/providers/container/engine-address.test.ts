import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { findEngine } from '../../../../src/providers/container/engine-address.ts'

const newHome = (): string => mkdtempSync(join(tmpdir(), 'engine-'))

const writeContext = (home: string, name: string, host: string): void => {
  const id = createHash('sha256').update(name).digest('hex')
  const meta = join(home, '.docker/contexts/meta', id)
  const tls = join(home, '.docker/contexts/tls', id, 'docker')
  mkdirSync(meta, { recursive: true })
  mkdirSync(tls, { recursive: true })
  writeFileSync(join(home, '.docker/config.json'), JSON.stringify({ currentContext: name }))
  writeFileSync(
    join(meta, 'meta.json'),
    JSON.stringify({ Name: name, Endpoints: { docker: { Host: host } } }),
  )
  writeFileSync(join(tls, 'ca.pem'), 'the authority')
}

describe('the engine is found', () => {
  it('at the setting, then DOCKER_HOST, then the docker context, then CONTAINER_HOST', () => {
    const home = newHome()
    const env = { DOCKER_HOST: 'tcp://h:1', CONTAINER_HOST: 'unix:///c' }
    expect(findEngine({ host: 'unix:///s', env, home })?.url).toBe('unix:///s')
    expect(findEngine({ env, home })).toMatchObject({ url: 'tcp://h:1', source: 'DOCKER_HOST' })
    writeContext(home, 'lab', 'ssh://me@lab')
    expect(findEngine({ env: { CONTAINER_HOST: 'unix:///c' }, home })).toEqual({
      url: 'ssh://me@lab',
      source: "the docker context 'lab'",
      tls: { ca: Buffer.from('the authority') },
    })
    const plain = newHome()
    expect(findEngine({ env: { CONTAINER_HOST: 'unix:///c' }, home: plain })?.url).toBe('unix:///c')
  })

  it('at a socket of the user', () => {
    const runtime = newHome()
    mkdirSync(join(runtime, 'podman'))
    writeFileSync(join(runtime, 'podman/podman.sock'), '')
    const found = findEngine({ env: { XDG_RUNTIME_DIR: runtime }, home: newHome() })
    // A computer with Docker has its socket first.
    expect(['unix:///var/run/docker.sock', `unix://${runtime}/podman/podman.sock`]).toContain(found?.url)
  })

  it('with the certificates of DOCKER_CERT_PATH', () => {
    const certificates = newHome()
    for (const name of ['ca', 'cert', 'key']) writeFileSync(join(certificates, `${name}.pem`), name)
    const env = { DOCKER_HOST: 'tcp://h:2376', DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: certificates }
    const { tls } = findEngine({ env, home: newHome() })!
    expect(Object.values(tls!).map(String)).toEqual(['ca', 'cert', 'key'])
  })

  it('unless the context named is not there', () => {
    const env = { DOCKER_CONTEXT: 'gone', CONTAINER_HOST: 'unix:///c' }
    expect(() => findEngine({ env, home: newHome() })).toThrow("The docker context 'gone' does not exist.")
  })
})
