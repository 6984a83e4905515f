import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { exitOf } from '../integration/providers/provider-contract.ts'
import type { TestEngine } from '../support/containers/engines.ts'
import { has } from '../support/has.ts'
import { createHarness } from '../support/providers.ts'

const IMAGE = 'localhost/deputy-test/debian:1'
const SCRIPT = fileURLToPath(new URL('../support/containers/debian-image.sh', import.meta.url))

/** Jobs in a Debian as its packages make it. It is built while the other tests run. */
export const describeDebian = (engine: TestEngine | undefined): void => {
  const missing = engine === undefined || !has('mmdebstrap')
  const tar = join(engine?.directory ?? '', 'debian.tar')
  const build = missing ? undefined : spawn('sh', [SCRIPT, tar], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  build?.stderr.on('data', chunk => (said += chunk))
  const built = build && once(build, 'close')

  it.skipIf(missing)(
    'a Debian has all that a job needs, with a list of domains too',
    async () => {
      const [status] = await built!
      expect(status, said).toBe(0)
      await engine!.importImage(tar, IMAGE)
      const harness = await createHarness({
        module: 'providers/container/container-provider.js',
        factory: 'createContainerProvider',
        options: { host: engine!.host, image: IMAGE },
      })
      const server = createServer((request, response) => response.end(`hello from ${request.url}\n`))
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as AddressInfo
      const { outcome, sink } = await harness.run({
        task: [
          'echo "bash $BASH_VERSION" | cut -c-6; cat given; echo made > made',
          'exec 3<>/dev/tcp/127.0.0.1/3128',
          `printf 'GET http://127.0.0.1:${port}/listed HTTP/1.0\\r\\n\\r\\n' >&3; tail -n 1 <&3`,
        ].join('\n'),
        files: [{ path: 'given', text: 'given\n' }],
        artifacts: ['made'],
        network: [`127.0.0.1:${port}`],
      })
      expect(sink.text()).toBe('bash 5\ngiven\nhello from /listed\n')
      expect(exitOf(outcome).artifacts.map(({ path }) => path)).toEqual(['made'])
      await harness.dispose()
      server.close()
    },
    300_000,
  )
}
