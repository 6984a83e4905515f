import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcp } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCertificate } from '../../../src/guest/certificate.ts'
import type { ProxmoxProviderOptions } from '../../../src/providers/proxmox/proxmox-provider-options.ts'
import { begin, never, run, useLab } from '../../support/begin-lab.ts'
import { hasCurl } from '../../support/curl.ts'
import { type TestEngine, until } from '../../support/engine.ts'
import type { Lab } from '../../support/proxmox-provider.ts'

/** Guests are processes here, and all they can reach without a proxy is this computer: so private addresses are open. */
const OPEN: Partial<ProxmoxProviderOptions> = { network: { firewall: true, privateAddresses: true } }

const beginOpen = () => begin({ provider: OPEN })

const runToResult = async (engine: TestEngine, manifest: Record<string, unknown>) => {
  const view = await run(engine, manifest)
  return { view, result: await engine.deputy.result(view.job_id, {}) }
}

const outRules = (lab: Lab) => lab.machines().map(vm => vm.firewall.rules.map(rule => rule.comment))

describe.skipIf(!hasCurl)('a list of domains in a VM', () => {
  let server: Server
  let port: number
  const asked: string[] = []
  beforeAll(async () => {
    server = createServer((request, response) => {
      asked.push(`${request.headers.host} ${request.url} ${request.headers['proxy-authorization'] ?? '-'}`)
      response.end(`hello from ${request.url}\n`)
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
  })
  afterAll(() => void server.close())

  const curl = (path: string, more = '') => `curl -sS -m 10 ${more} http://localhost:${port}${path}`
  const told = (what: string) => `-o /dev/null -w "${what} %{http_code} %{http_connect}\\n"`

  it('lets a job reach what is listed, by plain HTTP and through a tunnel, and nothing else', async () => {
    const { engine } = await beginOpen()
    const { view, result } = await runToResult(engine, {
      task: [
        curl('/plain?a=1'),
        curl('/tunnel', '--proxytunnel'),
        `curl -sS -m 10 http://other.example:${port}/; `,
        `curl -sS -m 10 ${told('tunnel')} --proxytunnel http://other.example/`,
        `curl -sS -m 10 ${told('port')} http://localhost:1/`,
        `curl -sS -m 10 ${told('address')} http://127.0.0.2:${port}/`,
        `echo "$https_proxy" | grep -c '^http://deputy:.*@127.0.0.1:'`,
        'echo "seen $https_proxy"',
      ].join('\n'),
      network: [`localhost:${port}`],
    })
    expect(view.status).toBe('success')
    // Each line alone: errors of curl come through a pipe of their own and may arrive between them.
    for (const line of ['hello from /plain?a=1\n', 'hello from /tunnel\n'])
      expect(result.output).toContain(line)
    expect(result.output).toContain(`other.example:${port} is not in the network list of this job`)
    for (const line of ['tunnel 000 403', 'port 403', 'address 403']) expect(result.output).toContain(line)
    expect(asked).toContain(`localhost:${port} /plain?a=1 -`)
    expect(result.isolation?.join()).toContain(`network: only localhost:${port}`)
    // What opens the proxy is nobody's business, not even in the job's own output.
    expect(result.output).toMatch(/^seen http:\/\/deputy:\[redacted\]@/m)
  })

  it('keeps the firewall shut but for the callback, as with no network at all', async () => {
    const { lab, engine } = await beginOpen()
    const seen: Record<string, unknown> = {}
    for (const network of ['none', 'full', [`localhost:${port}`]] as const) {
      const { job_id } = await engine.deputy.submit(
        { task: 'echo up; sleep 60', runtime: 'proxmox', network },
        'test',
      )
      await until(async () => (await engine.deputy.get(job_id)).status === 'running', 'it runs', 30_000)
      const [vm] = lab.machines()
      seen[String(network)] = { policy: vm!.firewall.options.policy_out, rules: outRules(lab)[0] }
      await engine.deputy.cancel(job_id, 'test')
      await until(() => lab.machines().length === 0, 'it is gone', 30_000)
    }
    const shut = { policy: 'DROP', rules: ['deputy callback'] }
    expect(seen).toEqual({
      none: shut,
      [`localhost:${port}`]: shut,
      full: { policy: 'ACCEPT', rules: ['deputy callback', 'deputy names', 'deputy names'] },
    })
  })

  it('requires the token of the job, from its own machine', async () => {
    const { engine } = await beginOpen()
    const first = await engine.deputy.submit(
      {
        task: 'echo "$http_proxy" >url; echo up; sleep 60',
        runtime: 'proxmox',
        network: [`localhost:${port}`],
      },
      'test',
    )
    await until(async () => (await engine.deputy.get(first.job_id)).status === 'running', 'it runs', 30_000)
    const { result } = await runToResult(engine, {
      task: [
        'bare="http://$(echo "$http_proxy" | cut -d@ -f2)"',
        `echo "$http_proxy" | sed 's/:[^:@]*@/:another-token-0123456789@/' >wrong`,
        `curl -sS -m 10 ${told('none')} -x "$bare" http://localhost:${port}/`,
        `curl -sS -m 10 ${told('tunnel')} -x "$bare" --proxytunnel http://localhost:${port}/`,
        `curl -sS -m 10 ${told('wrong')} -x "$(cat wrong)" http://localhost:${port}/`,
        `curl -sS -m 10 ${told('elsewhere')} --interface 127.0.0.9 -x "$http_proxy" http://localhost:${port}/`,
        `curl -sS -m 10 ${told('right')} -x "$http_proxy" http://localhost:${port}/`,
        // The proxy's token opens nothing else.
        'token=$(echo "$http_proxy" | sed "s/.*deputy:\\(.*\\)@.*/\\1/")',
        `curl -sS -m 10 ${told('work')} --noproxy '*' -H "Authorization: Bearer $token" "$bare/guest/v1/work"`,
      ].join('\n'),
      network: [`localhost:${port}`],
    })
    for (const line of ['none 407', 'tunnel 000 407', 'right 200']) expect(result.output).toContain(line)
    // While machines may not all be known yet, strangers are asked to come again.
    for (const word of ['wrong', 'elsewhere']) expect(result.output).toMatch(new RegExp(`${word} (407|503)`))
    expect(result.output).toMatch(/work (401|503)/)
    await engine.deputy.cancel(first.job_id, 'test')
  })

  it('reaches no private address unless the configuration lets jobs do that', async () => {
    const { engine } = await begin({ provider: { network: { firewall: true, privateAddresses: false } } })
    const { result } = await runToResult(engine, { task: curl('/'), network: [`localhost:${port}`] })
    expect(result.output).toContain('localhost is 127.0.0.1, a private address, which no job may reach')
  })

  it('ends with the job: a tunnel of a cancelled one is cut, and its token is worth nothing', async () => {
    const { lab, engine } = await beginOpen()
    let open = 0
    const raw = createTcp(socket => {
      open++
      socket.on('close', () => open--)
      socket.on('error', () => {})
      socket.resume()
    })
    await new Promise<void>(resolve => raw.listen(0, '127.0.0.1', resolve))
    const at = `localhost:${(raw.address() as AddressInfo).port}`
    // Left running in a machine that is kept, so that nothing but us can end it.
    const { job_id } = await engine.deputy.submit(
      {
        task: `setsid curl -sS -m 50 --proxytunnel http://${at}/ >/dev/null 2>&1 & echo on; sleep 60`,
        runtime: 'proxmox',
        lifecycle: 'persistent',
        network: [at],
      },
      'test',
    )
    await until(() => open === 1, 'the tunnel is open', 30_000)
    await engine.deputy.cancel(job_id, 'test')
    await until(() => open === 0, 'the tunnel is cut', 20_000)
    expect((await engine.deputy.wait(job_id, { timeoutMs: 30_000, signal: never })).status).toBe('cancelled')
    // A follow-up has the network of its machine, by a token of its own.
    const [machine] = await engine.deputy.machines()
    const again = await runToResult(engine, {
      task: `curl -sS -m 2 ${told('again')} http://${at}/; curl -sS -m 2 ${told('other')} http://localhost:1/`,
      machine: machine!.machine_id,
    })
    expect(again.result.output).toContain('other 403')
    expect(again.result.isolation?.join()).toContain(`network: only ${at}`)
    raw.close()
    expect(lab.machines()).toHaveLength(1)
  })

  it('lets a machine have so many connections and no more', async () => {
    const { engine } = await beginOpen()
    const raw = createTcp(socket => void socket.on('error', () => {}).write('banner\n'))
    await new Promise<void>(resolve => raw.listen(0, '127.0.0.1', resolve))
    const at = `localhost:${(raw.address() as AddressInfo).port}`
    const { result } = await runToResult(engine, {
      task: [
        'auth=$(echo "$http_proxy" | sed "s/^http:..\\(.*\\)@.*/\\1/" | tr -d "\\n" | base64 -w0)',
        'host=$(echo "$http_proxy" | sed "s/.*@\\(.*\\):.*/\\1/"); port=$(echo "$http_proxy" | sed "s/.*://"); n=10',
        'while [ $n -lt 74 ]; do eval "exec $n<>/dev/tcp/$host/$port"',
        `  printf 'CONNECT ${at} HTTP/1.1\\r\\nProxy-Authorization: Basic %s\\r\\n\\r\\n' "$auth" >&$n; head -c 12 <&$n >/dev/null; n=$((n+1)); done`,
        `curl -sS -m 10 ${told('last')} --proxytunnel http://${at}/`,
      ].join('\n'),
      network: [at],
    })
    expect(result.output).toContain('last 000 429')
    raw.close()
  })

  it('works on after a restart of the daemon, with the same token', async () => {
    const lab = await useLab({ provider: OPEN })
    const probe = createTcp()
    await new Promise<void>(resolve => probe.listen(0, '127.0.0.1', resolve))
    lab.usePort((probe.address() as AddressInfo).port)
    await new Promise(resolve => probe.close(resolve))
    const engine = await lab.open(lab.makeProvider())
    const { job_id } = await engine.deputy.submit(
      {
        task: `for i in $(seq 1 300); do ${curl('/again')} >/dev/null 2>&1; sleep 0.1; done`,
        runtime: 'proxmox',
        network: [`localhost:${port}`],
      },
      'test',
    )
    await until(async () => (await engine.deputy.get(job_id)).status === 'running', 'it runs', 30_000)
    await engine.close()
    const again = await lab.open(lab.makeProvider())
    const before = asked.length
    await until(
      () => asked.slice(before).some(line => line.includes('/again')),
      'the proxy works again',
      30_000,
    )
    await again.deputy.cancel(job_id, 'test')
  })

  it('is kept where machines report over HTTPS, too, and nothing but the proxy is open in the clear', async () => {
    const tls = createCertificate({ commonName: 'deputy', names: ['127.0.0.1'] })
    const { engine } = await begin({ provider: { ...OPEN, callback: { host: '127.0.0.1', port: 0, tls } } })
    const { view, result } = await runToResult(engine, {
      task: [
        curl('/plain'),
        curl('/tunnel', '--proxytunnel'),
        'bare="http://$(echo "$http_proxy" | cut -d@ -f2)"',
        `curl -sS -m 10 ${told('clear')} --noproxy '*' "$bare/health"`,
        `curl -sS -m 10 ${told('safe')} --noproxy '*' -k "https://$(echo "$http_proxy" | cut -d@ -f2)/health"`,
        `curl -sS -m 10 ${told('none')} -x "$bare" http://localhost:${port}/`,
      ].join('\n'),
      network: [`localhost:${port}`],
    })
    expect(view.status).toBe('success')
    expect(result.output).toContain('hello from /plain\nhello from /tunnel\n')
    for (const line of ['clear 400', 'safe 200', 'none 407']) expect(result.output).toContain(line)
  })

  it('comes from the agent when the job says nothing of its network', async () => {
    const { lab, engine } = await begin({
      provider: OPEN,
      engine: {
        config: config => {
          const common = { env: {}, secrets: [], programs: [], format: 'text' as const }
          config.agents.listed = {
            ...common,
            argv: ['sh', '-c', curl('/preset')],
            network: [`localhost:${port}`],
          }
          config.agents.open = { ...common, argv: ['sh', '-c', 'echo "[$http_proxy]"'], network: 'full' }
        },
      },
    })
    expect((await runToResult(engine, { task: 'x', agentType: 'listed' })).result.output).toBe(
      'hello from /preset\n',
    )
    const { result } = await runToResult(engine, { task: 'x', agentType: 'open' })
    expect(result).toMatchObject({
      output: '[]\n',
      isolation: expect.arrayContaining([expect.stringContaining('filtered network')]),
    })
    expect(lab.emulator.requests.some(line => /PUT .*firewall.options/.test(line))).toBe(true)
  })
})

it('is refused where machines have no way to the proxy', async () => {
  const { engine } = await begin({ provider: { channel: 'agent' } })
  await expect(
    engine.deputy.submit({ task: 'true', runtime: 'proxmox', network: ['example.org'] }, 'test'),
  ).rejects.toThrow(/guest agent/)
})
