import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { parseManifest } from '../../../../src/jobs/manifest.ts'
import { createContainerProvider } from '../../../../src/providers/container/container-provider.ts'
import { containerSpec } from '../../../../src/providers/container/container-spec.ts'
import { blobsWithoutStore } from '../../../support/blobs.ts'
import { removeDirectory } from '../../../support/remove-directory.ts'

const stateDir = mkdtempSync(join(tmpdir(), 'container-'))
afterAll(() => removeDirectory(stateDir))
const manifest = (more: object) => parseManifest({ task: 'x', ...more })

describe('the container provider', () => {
  const blobs = blobsWithoutStore(stateDir)
  const provider = createContainerProvider({ stateDir, blobs, warm: ['node:22'], host: 'unix:///none' })

  it('gives a container that was started ahead only to jobs that it serves', () => {
    const kindFor = (more: object) => provider.pool?.kindFor(manifest({ image: 'node:22', ...more }))
    for (const more of [
      {},
      { network: 'none' },
      { network: ['example.org'] },
      { pull: 'missing' },
      { pull: 'never' },
    ])
      expect([more, kindFor(more)]).toEqual([more, 'node:22'])
    for (const more of [{ pull: 'always' }, { network: 'full' }, { gpus: 1 }, { image: 'node:20' }])
      expect([more, kindFor(more)]).toEqual([more, undefined])
  })

  it('has a kernel for each job where its OCI runtime starts a VM', () => {
    const ownKernel = (runtimeClass?: string) =>
      createContainerProvider({ stateDir, blobs, runtimeClass }).ownKernel
    expect([undefined, 'runsc', 'kata-qemu'].map(ownKernel)).toEqual([false, false, true])
  })

  it.each([
    ['postgres', 'postgres'],
    ['docker.io/library/postgres:16', 'postgres'],
    ['node:22', '1000:1000'],
  ])('runs %s as the user %s', (name, user) => {
    const spec = containerSpec({
      engine: 'docker',
      machineId: 'm',
      owner: 'own',
      image: { name, id: 'sha256:1', platform: 'linux/amd64', user: '', volumes: [] },
      users: { 'postgres:*': 'postgres' },
      defaults: { cpu: 1, memory: 1, disk: 1, processes: 1 },
      network: 'none',
    })
    expect(spec.User).toBe(user)
  })
})
