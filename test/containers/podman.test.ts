import { expect, it } from 'vitest'
import { TOOLS } from '../support/containers/engines.ts'
import { createHarness } from '../support/providers.ts'
import { describeContainerContract } from './container-contract.ts'
import { describeImages } from './images.ts'
import { describeIsolation } from './isolation.ts'
import { describeVolumes } from './volumes.ts'

const { engine, missing, registries } = await describeContainerContract('podman')
describeVolumes(engine, missing)
describeIsolation(engine, missing)
describeImages(engine, registries)

it.skipIf(missing !== undefined)(
  'podman refuses GPUs and runtime classes, which it would ignore',
  async () => {
    const open = (more = {}) =>
      createHarness({
        module: 'providers/container/container-provider.js',
        factory: 'createContainerProvider',
        options: { host: engine?.host, image: TOOLS, ...more },
      })
    const plain = await open()
    await expect(plain.run({ task: 'true', gpus: 'all' })).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringContaining('GPUs need Docker'),
    })
    await plain.dispose()
    const kata = await open({ runtimeClass: 'kata' })
    await expect(kata.run({ task: 'true' })).rejects.toMatchObject({
      code: 'unsupported',
      message: expect.stringContaining('container.runtimeClass needs Docker'),
    })
    await kata.dispose()
  },
)
