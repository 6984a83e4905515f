import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exitOf } from '../integration/providers/provider-contract.ts'
import { testImage } from '../support/microvm.ts'
import { createHarness, type Harness } from '../support/providers.ts'
import { requireOrSkip } from '../support/require.ts'

const { imagesDir, image, missing } = await testImage()
requireOrSkip(missing)

/** An address of this computer other than loopback. */
const own = Object.values(networkInterfaces())
  .flat()
  .find(one => one?.family === 'IPv4' && !one.internal)?.address

describe.skipIf(missing !== undefined)('the network of a VM', () => {
  let harness: Harness
  let server: Server
  let port: number

  beforeAll(async () => {
    harness = await createHarness({
      module: 'providers/microvm/microvm-provider.js',
      factory: 'createMicrovmProvider',
      options: { imagesDir, image, graceSeconds: 1 },
      patienceSeconds: 240,
    })
    server = createServer((request, response) => {
      response.end(request.url === '/large' ? 'x'.repeat(2_000_000) : `hello from ${request.url}\n`)
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
  })
  afterAll(async () => {
    await harness?.dispose()
    server?.close()
  })

  const get = (url: string) => `curl -sS --max-time 120 ${url}`

  it('reaches what is listed and nothing else, and a kept VM keeps its list', async () => {
    const here = `http://127.0.0.1:${port}`
    const first = await harness.launch({
      task: [
        get(`${here}/plain`),
        `${get(`${here}/large`)} | wc -c`,
        `${get('http://10.0.0.1/')}`,
        `${get(`--noproxy '*' ${here}/direct`)} || echo no way`,
        'ls /sys/class/net',
      ].join('\n'),
      network: [`127.0.0.1:${port}`],
      timeout: 600,
    })
    const exit = exitOf(await first.outcome)
    expect(first.sink.text('stdout')).toBe(
      'hello from /plain\n2000000\n10.0.0.1:80 is not in the network list of this job.\nno way\nlo\n',
    )
    expect(exit.isolation).toContain(`network: only 127.0.0.1:${port}`)
    const next = async (more: object) => {
      const input = { task: get(`${here}/kept`), machine: first.machine.id, timeout: 600, ...more }
      const { outcome, sink } = await harness.launch(input, {}, first.machine)
      await outcome
      return sink.text()
    }
    expect(await next({})).toBe('hello from /kept\n')
    expect(await next({ network: 'none' })).toContain('curl: (7)')
  })

  it('is open but for the loopback of this computer, if the job asks for it', async () => {
    const elsewhere = createServer((_, response) => response.end('hello from elsewhere\n'))
    await new Promise<void>(resolve => elsewhere.listen(0, own, resolve))
    const urls = [
      ...[`127.0.0.1:${port}`, `localhost:${port}`],
      ...(own === undefined ? [] : [`${own}:${(elsewhere.address() as AddressInfo).port}`]),
    ]
    const { outcome, sink } = await harness.run({
      task: urls.map(host => get(`--noproxy '' http://${host}/`)).join('\n'),
      network: 'full',
      timeout: 600,
    })
    elsewhere.close()
    expect(exitOf(outcome).isolation).toContain('network through a proxy')
    const [numeric, named, other] = sink.text().split('\n')
    expect(numeric).toContain('127.0.0.1 is 127.0.0.1, an address of this computer')
    expect(named).toMatch(/localhost is .*, an address of this computer/)
    if (own !== undefined) expect(other).toBe('hello from elsewhere')
  })
})
