import { expect, it } from 'vitest'
import { BUSYBOX, createEngine, importBusybox, missingForEngine } from '../support/containers/engines.ts'
import { createHarness } from '../support/providers.ts'

it.skipIf(missingForEngine('docker') !== undefined)(
  'a job is lost with an engine that stops its containers, and nothing is left of it',
  async () => {
    const engine = await createEngine('docker')
    try {
      await importBusybox(engine)
      const harness = await createHarness({
        module: 'providers/container/container-provider.js',
        factory: 'createContainerProvider',
        options: { host: engine.host, image: BUSYBOX },
      })
      const launched = await harness.launch({ task: 'echo on; sleep 600' })
      await launched.sink.until(sink => sink.text() === 'on\n', 'it runs')
      await engine.kill('SIGTERM')
      await engine.start()
      expect(await launched.outcome).toMatchObject({
        kind: 'lost',
        error: { message: expect.stringContaining('the engine was restarted') },
      })
      expect(launched.sink.text()).toBe('on\n')
      await harness.provider.destroy(launched.machine, AbortSignal.timeout(60_000))
      expect(await harness.provider.list(AbortSignal.timeout(60_000))).toEqual([])
      await harness.dispose()
    } finally {
      await engine.close()
    }
  },
)
