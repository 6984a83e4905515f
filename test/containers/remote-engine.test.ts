import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestCli } from '../support/cli.ts'
import {
  BUSYBOX,
  createEngine,
  importBusybox,
  missingForEngine,
  type TestEngine,
} from '../support/containers/engines.ts'
import { freePort } from '../support/free-port.ts'
import { has } from '../support/has.ts'
import { removeDirectory } from '../support/remove-directory.ts'
import { createSshLab, missingForSshLab, type SshLab } from '../support/sshlab.ts'

const missing =
  missingForEngine('docker') ??
  missingForSshLab() ??
  ['docker', 'openssl'].map(tool => (has(tool) ? undefined : `${tool} is not installed`)).find(Boolean)

describe.skipIf(missing !== undefined)('an engine on another computer', () => {
  let engine: TestEngine
  let port: number
  const directory = mkdtempSync(join(tmpdir(), 'remote-'))
  const certificates = join(directory, 'certificates')

  beforeAll(async () => {
    makeCertificates(certificates)
    port = await freePort()
    engine = await createEngine('docker', {
      more: [
        ...['-H', `tcp://127.0.0.1:${port}`, '--tlsverify', '--tlscacert', join(certificates, 'ca.pem')],
        ...['--tlscert', join(certificates, 'cert.pem'), '--tlskey', join(certificates, 'key.pem')],
      ],
    })
    await importBusybox(engine)
  })
  afterAll(async () => {
    await engine?.close()
    removeDirectory(directory)
  })

  const run = async (env: Record<string, string>) => {
    const cli = createTestCli({ HOME: directory, ...env })
    try {
      const args = [
        'run',
        '--retries',
        '0',
        '--image',
        BUSYBOX,
        '--artifact',
        'out',
        '--',
        'echo here | tee out',
      ]
      return await cli.run(args)
    } finally {
      await cli.close()
    }
  }

  it('is reached over tcp with TLS, by those who have a certificate', async () => {
    const DOCKER_HOST = `tcp://127.0.0.1:${port}`
    const served = await run({ DOCKER_HOST, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: certificates })
    expect(served, served.stderr).toMatchObject({ code: 0, stdout: 'here\n' })
    const stranger = join(directory, 'stranger')
    makeCertificates(stranger)
    const refused = await run({ DOCKER_HOST, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: stranger })
    expect(refused.code).not.toBe(0)
    expect(refused.stderr).toContain(`The container engine at ${DOCKER_HOST} does not answer`)
  })

  it('is reached over ssh, as docker does it', async () => {
    const lab: SshLab = await createSshLab({
      nodes: 1,
      mode: 'loopback',
      config: [`ForceCommand env DOCKER_HOST=${engine.host} $SSH_ORIGINAL_COMMAND`],
    })
    try {
      const [node] = lab.nodes
      // As the user's own ssh configuration would have it.
      const ssh = join(directory, 'ssh')
      const options = `-F none -i ${lab.identity} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR`
      writeFileSync(ssh, `#!/bin/sh\nexec /usr/bin/ssh ${options} "$@"\n`)
      chmodSync(ssh, 0o755)
      const env = {
        DOCKER_HOST: `ssh://${lab.user}@${node!.address}:${node!.port}`,
        PATH: `${directory}:${process.env.PATH}`,
      }
      const served = await run(env)
      expect(served, served.stderr).toMatchObject({ code: 0, stdout: 'here\n' })
      await node!.stop()
      const refused = await run(env)
      expect(refused.code).not.toBe(0)
      expect(refused.stderr).toContain('Connection refused')
    } finally {
      await lab.close()
    }
  })
})

/** A certificate authority, and one certificate for the engine and its client alike. */
const makeCertificates = (directory: string): void => {
  mkdirSync(directory)
  const openssl = (...args: string[]): void =>
    void execFileSync('openssl', args, { cwd: directory, stdio: 'pipe' })
  const request = ['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  openssl(...request, '-x509', '-subj', '/CN=test', '-keyout', 'ca-key.pem', '-out', 'ca.pem')
  openssl(...request, '-subj', '/CN=127.0.0.1', '-keyout', 'key.pem', '-out', 'request.pem')
  writeFileSync(
    join(directory, 'names'),
    'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n',
  )
  const sign = [
    'x509',
    '-req',
    '-in',
    'request.pem',
    '-CA',
    'ca.pem',
    '-CAkey',
    'ca-key.pem',
    '-CAcreateserial',
  ]
  openssl(...sign, '-days', '2', '-extfile', 'names', '-out', 'cert.pem')
}
