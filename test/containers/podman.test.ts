import { expect, it } from 'vitest'
import { TOOLS } from '../support/containers/engines.ts'
import { createHarness } from '../support/providers.ts'
import { describeContainerContract } from './container-contract.ts'
import { describeImages } from './images.ts'
import { describeVolumes } from './volumes.ts'

const { engine, missing, registries } = await describeContainerContract('podman')
describeVolumes(engine, missing)
describeImages(engine, registries)

it.skipIf(missing !== undefined)('podman has no GPUs to give, and says so', async () => {
  const harness = await createHarness({
    module: 'providers/container/container-provider.js',
    factory: 'createContainerProvider',
    options: { host: engine?.host, image: TOOLS },
  })
  await expect(harness.run({ task: 'true', gpus: 'all' })).rejects.toMatchObject({
    code: 'unsupported',
    message: expect.stringContaining('GPUs need Docker'),
  })
  await harness.dispose()
})
