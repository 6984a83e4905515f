import { expect, it } from 'vitest'
import { exitOf } from '../integration/providers/provider-contract.ts'
import { createEngine, importTools, missingForEngine, TOOLS } from '../support/containers/engines.ts'
import { missingForRootless } from '../support/containers/rootless.ts'
import { createHarness } from '../support/providers.ts'

const missing = missingForEngine('podman') ?? missingForRootless()

it.skipIf(missing !== undefined)(
  `a rootless Podman runs jobs with files, artifacts and /workspace, and nothing is left${missing ? ` (skipped: ${missing})` : ''}`,
  async () => {
    const engine = await createEngine('podman', { rootless: true })
    try {
      await importTools(engine)
      const harness = await createHarness({
        module: 'providers/container/container-provider.js',
        factory: 'createContainerProvider',
        options: { host: engine.host, image: TOOLS },
      })
      const info = JSON.parse((await engine.api('GET', '/v4.0.0/libpod/info')).text)
      expect(info.host.security.rootless).toBe(true)
      const launched = await harness.launch({
        task: [
          'id -u; cat given; echo made >/workspace/made; cat /work/made',
          'dd if=/dev/zero of=big bs=1M count=64 2>&1 | grep -o "No space left"; rm big',
          'touch /usr/x 2>/dev/null && echo "/usr is writable"; ls /sys/class/net',
        ].join('\n'),
        files: [{ path: 'given', text: 'given\n' }],
        artifacts: ['made'],
        resources: { disk: '16M' },
      })
      const exit = exitOf(await launched.outcome)
      expect(launched.sink.text()).toBe('1000\ngiven\nmade\nNo space left\nlo\n')
      expect(exit).toMatchObject({ code: 0, artifacts: [{ path: 'made' }] })
      await harness.provider.destroy(launched.machine, AbortSignal.timeout(60_000))
      expect(await harness.provider.list(AbortSignal.timeout(60_000))).toEqual([])
      expect(JSON.parse((await engine.api('GET', '/v1.40/containers/json?all=1')).text)).toEqual([])
      await harness.dispose()
    } finally {
      await engine.close()
    }
  },
  300_000,
)
