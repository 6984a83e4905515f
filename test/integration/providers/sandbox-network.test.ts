import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHarness, type Harness } from '../../support/providers.ts'
import { SANDBOXES } from '../../support/sandboxes.ts'
import { exitOf } from './provider-contract.ts'

for (const { name, subject, skip } of SANDBOXES.slice(0, 2))
  describe.skipIf(skip !== undefined)(`the network of a sandbox (${name})`, () => {
    let harness: Harness
    let server: Server
    let port: number
    const asked: string[] = []
    beforeAll(async () => {
      harness = await createHarness(subject)
      server = createServer((request, response) => {
        asked.push(`${request.method} ${request.headers.host} ${request.url}`)
        response.end(`hello from ${request.url}\n`)
      })
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
      port = (server.address() as AddressInfo).port
    })
    afterAll(async () => {
      await harness.dispose()
      server.close()
    })

    const fetchWith = (url: string, options = '') => `curl -sS -m 10 ${options} ${url}`

    it('is absent by default', async () => {
      const { outcome, sink } = await harness.run({
        task: `ls /sys/class/net 2>/dev/null; cat /proc/net/dev | tail -n +3 | cut -d: -f1; ${fetchWith(`http://127.0.0.1:${port}/`)}`,
      })
      expect(exitOf(outcome)).toMatchObject({ code: 7, isolation: expect.arrayContaining(['no network']) })
      expect(sink.text('stdout').trim()).toBe('lo')
    })

    it("is the computer's network when requested", async () => {
      const { outcome, sink } = await harness.run({
        task: fetchWith(`http://127.0.0.1:${port}/full`),
        network: 'full',
      })
      expect(sink.text()).toBe('hello from /full\n')
      expect(exitOf(outcome).isolation.join()).toContain('network: that of this computer')
    })

    it('reaches what is listed, by plain HTTP and through a tunnel', async () => {
      const { outcome, sink } = await harness.run({
        task: [
          fetchWith(`http://127.0.0.1:${port}/plain?a=1`),
          fetchWith(`http://127.0.0.1:${port}/tunnel`, '--proxytunnel'),
          fetchWith(`http://localhost:${port}/named`),
        ].join(' && '),
        network: [`127.0.0.1:${port}`, `localhost:${port}`],
      })
      expect(sink.text()).toBe('hello from /plain?a=1\nhello from /tunnel\nhello from /named\n')
      expect(exitOf(outcome).code).toBe(0)
      expect(asked).toContain(`GET 127.0.0.1:${port} /plain?a=1`)
    })

    it('refuses everything else, and there is no other route', async () => {
      const before = asked.length
      const { sink } = await harness.run({
        task: [
          'unset NO_PROXY no_proxy',
          `${fetchWith(`http://127.0.0.1:${port}/`, '-o /dev/null -w "plain %{http_code}\\n"')}`,
          `${fetchWith(`http://127.0.0.1:${port}/`, '--proxytunnel -o /dev/null -w "tunnel %{http_connect}\\n"')}`,
          `${fetchWith('http://localhost:1/', '-o /dev/null -w "port %{http_code}\\n"')}`,
          `${fetchWith(`http://[::1]:${port}/`, '-o /dev/null -w "v6 %{http_code}\\n"')}`,
          `${fetchWith(`http://127.0.0.1:${port}/`, '--noproxy "*"')}; echo "direct $?"`,
          `curl -sS -m 10 -x '' http://example.org/; echo "name $?"`,
          `curl -sS -m 10 -H 'Host: allowed.example' http://127.0.0.1:${port}/ -o /dev/null -w "host %{http_code}\\n"`,
        ].join('\n'),
        network: ['*.allowed.example', 'localhost:2'],
      })
      const told = sink.text('stdout')
      for (const line of ['plain 403', 'tunnel 403', 'port 403', 'v6 403', 'direct 7', 'name 6', 'host 403'])
        expect(told).toContain(line)
      expect(asked.length).toBe(before)
    })

    it('keeps the proxy while no daemon runs', async () => {
      const launched = await harness.launch({
        task: `echo on; sleep 1; ${fetchWith(`http://127.0.0.1:${port}/late`)}`,
        network: [`127.0.0.1:${port}`],
      })
      await launched.sink.until(sink => sink.text().includes('on'), 'it runs')
      launched.detach()
      await launched.outcome
      await harness.restart()
      const again = harness.reattach(launched, launched.sink.position)
      expect(exitOf(await again.outcome).code).toBe(0)
      expect(launched.sink.text() + again.sink.text()).toBe('on\nhello from /late\n')
      await harness.provider.destroy(launched.machine, AbortSignal.timeout(30_000))
    })

    it('still works in a kept machine after its job was stopped', async () => {
      const first = await harness.launch({
        ...{ task: 'echo on; sleep 60', lifecycle: 'persistent', network: [`127.0.0.1:${port}`] },
      })
      await first.sink.until(sink => sink.text().includes('on'), 'it runs')
      first.stop('cancel')
      await first.outcome
      const task = fetchWith(`http://127.0.0.1:${port}/kept`)
      const second = await harness.launch({ task, machine: first.machine.id }, {}, first.machine)
      expect(exitOf(await second.outcome).code).toBe(0)
      expect(second.sink.text()).toBe('hello from /kept\n')
      await harness.provider.destroy(first.machine, AbortSignal.timeout(30_000))
    })

    it('ends with the proxy gone and the tunnel closed', async () => {
      let open = 0
      const raw = createTcpServer(socket => {
        open += 1
        socket.on('close', () => {
          open -= 1
        })
        socket.on('error', () => {})
        socket.write('banner\n')
      })
      await new Promise<void>(resolve => raw.listen(0, '127.0.0.1', resolve))
      const at = `127.0.0.1:${(raw.address() as AddressInfo).port}`
      const { sink } = await harness.run({
        task: `exec 9<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT ${at} HTTP/1.1\\r\\nHost: ${at}\\r\\n\\r\\n' >&9; head -n 3 <&9 | tail -n 1`,
        network: [at],
      })
      expect(sink.text()).toBe('banner\n')
      for (let waited = 0; open > 0 && waited < 5000; waited += 20)
        await new Promise(resolve => setTimeout(resolve, 20))
      expect(open).toBe(0)
      raw.close()
    })
  })
