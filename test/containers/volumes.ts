import { expect, it } from 'vitest'
import { exitOf } from '../integration/providers/provider-contract.ts'
import { type TestEngine, TOOLS } from '../support/containers/engines.ts'
import { createHarness } from '../support/providers.ts'

const IMAGE = 'localhost/deputy-test/volumes:1'

/** An image of the tools that also declares a volume. */
const commitVolume = async (engine: TestEngine): Promise<void> => {
  const made = await engine.api('POST', '/v1.40/containers/create', { Image: TOOLS, Cmd: ['true'] })
  const { Id } = JSON.parse(made.text) as { Id: string }
  const [repo, tag] = IMAGE.split(/:(?=1$)/)
  const query = `container=${Id}&repo=${repo}&tag=${tag}&changes=${encodeURIComponent('VOLUME /srv/data/')}`
  const { status, text } = await engine.api('POST', `/v1.40/commit?${query}`, {})
  expect(status, text).toBe(201)
  await engine.api('DELETE', `/v1.40/containers/${Id}?force=1`)
}

export const describeVolumes = (engine: TestEngine | undefined, missing: string | undefined): void => {
  it.skipIf(missing !== undefined)(
    'a volume of an image is in memory, with the limit of --disk',
    async () => {
      await commitVolume(engine!)
      const harness = await createHarness({
        module: 'providers/container/container-provider.js',
        factory: 'createContainerProvider',
        options: { host: engine!.host, image: IMAGE },
      })
      const task =
        'grep -o " /srv/data tmpfs" /proc/mounts; dd if=/dev/zero of=/srv/data/big bs=1M count=64 2>&1 | grep -o "No space left"; wc -c </srv/data/big'
      const launched = await harness.launch({ task, resources: { disk: '16M' } })
      expect(exitOf(await launched.outcome).code, launched.sink.text()).toBe(0)
      expect(launched.sink.text()).toMatch(/^ \/srv\/data tmpfs\nNo space left\n16777216\n$/)
      const { text } = await engine!.api('GET', '/v1.40/volumes')
      expect((JSON.parse(text) as { Volumes: unknown[] | null }).Volumes ?? []).toEqual([])
      await harness.dispose()
    },
  )
}
