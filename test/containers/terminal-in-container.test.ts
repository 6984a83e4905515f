import { expect, it } from 'vitest'
import { containerName } from '../../src/providers/container/container-spec.ts'
import { createEngineClient } from '../../src/providers/container/engine-client.ts'
import { sampleContainer } from '../../src/providers/container/sample-container.ts'
import { BROWSER, startBrowser } from '../support/browser.ts'
import { terminalOf } from '../support/console.ts'
import { BUSYBOX, createEngine, importBusybox, missingForEngine } from '../support/containers/engines.ts'
import { newHome, removeDirectory, startDaemon } from '../support/daemon.ts'
import { until } from '../support/engine.ts'

it.for(['docker', 'podman'] as const)(
  'the console has a terminal in a container of %s, which tells what the job uses',
  { timeout: 300_000 },
  async (name, { skip }) => {
    const missing = BROWSER === undefined ? 'no chromium in the PATH' : missingForEngine(name)
    skip(missing !== undefined, missing)
    const engine = await createEngine(name)
    const directory = newHome()
    await importBusybox(engine)
    const daemon = await startDaemon({ directory, env: { DOCKER_HOST: engine.host } })
    const { client } = daemon
    const browser = await startBrowser()
    try {
      await browser.open(await client.consoleUrl({ mayApprove: true }))
      await browser.until(`document.querySelector('.tiles')`)
      const { job_id } = await client.submit({ task: 'while :; do :; done', image: BUSYBOX })
      await until(async () => (await client.get(job_id)).status === 'running', 'the job runs', 120_000)
      const { machine_id } = await client.get(job_id)
      await browser.run(`location.hash = '#/terminal/${machine_id}'`)
      const { connected, typeLine, shows } = terminalOf(() => browser)
      await connected()
      await typeLine('echo $((6*7))-answer; ls /bin/busybox')
      await shows('42-answer')
      await typeLine('exit 3')
      await browser.until(`document.querySelector('[role=status]').innerText === 'ended with 3'`)
      const sampling = sampleContainer({
        client: createEngineClient({ url: engine.host, source: 'test' }),
        container: containerName(machine_id ?? ''),
        isKept: false,
        ranMs: 0,
        signal: new AbortController().signal,
      })
      await until(async () => sampling.samples.length >= 2, 'the engine tells what is used', 120_000)
      sampling.end()
      expect(sampling.samples.at(-1)?.cpuMs).toBeGreaterThan(0)
      expect(sampling.samples.at(-1)?.memory).toBeGreaterThan(0)
      await client.cancel(job_id)
      await until(async () => (await client.get(job_id)).status === 'cancelled', 'the job ends', 60_000)
    } finally {
      await browser.close()
      await daemon.kill('SIGTERM')
      removeDirectory(directory)
      await engine.close()
    }
  },
)
