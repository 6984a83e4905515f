import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exitOf } from '../integration/providers/provider-contract.ts'
import {
  BUSYBOX,
  createEngine,
  importBusybox,
  importTools,
  missingForEngine,
  type TestEngine,
  TOOLS,
} from '../support/containers/engines.ts'
import { createHarness, type Harness } from '../support/providers.ts'

/** Outside of the containers, in the network of their engine. */
const OUTSIDE = '203.0.113.1'
const SERVE = `require('http').createServer((q, a) => a.end('outside ' + q.url)).listen(80, () => console.log('up'))`

/** Defines get(url), which prints the status and the body, and ask(host, port), which prints whether it connects. */
const PYTHON = `import socket, sys, urllib.request, urllib.error
def get(url, direct=False):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({})) if direct else urllib.request.build_opener()
    try:
        with opener.open(url, timeout=60) as answer: print(answer.status, answer.read().decode().strip())
    except urllib.error.HTTPError as error: print(error.code, error.read().decode().strip())
    except OSError as error: print('no', url)
def ask(host, port):
    try: socket.create_connection((host, port), 10).close(); print('connected', host)
    except OSError as error: print('no', host)
def connect(target, text):
    with socket.create_connection(('127.0.0.1', 3128), 60) as s:
        s.sendall(b'CONNECT ' + target.encode() + b' HTTP/1.1\\r\\n\\r\\n')
        head = s.recv(39)
        print(head.split(b'\\r')[0].decode())
        s.sendall(text.encode())
        s.shutdown(socket.SHUT_WR)
        rest = b''
        while chunk := s.recv(65536): rest += chunk
        print(rest.split(b'\\r\\n\\r\\n')[-1].decode().strip())
`
const python = (...lines: string[]): string =>
  `cat >/tmp/x.py <<'END'\n${PYTHON}${lines.join('\n')}\nEND\npython3 /tmp/x.py`

describe.each(['docker', 'podman'] as const)('the network of a container (%s)', name => {
  const missing = missingForEngine(name)
  let engine: TestEngine
  let harness: Harness
  let server: Server
  let port: number
  const asked: string[] = []

  beforeAll(async () => {
    if (missing !== undefined) return
    engine = await createEngine(name, { network: 'own' })
    await importTools(engine)
    harness = await createHarness({
      module: 'providers/container/container-provider.js',
      factory: 'createContainerProvider',
      options: { host: engine.host, image: TOOLS, graceSeconds: 1 },
    })
    server = createServer((request, response) => {
      asked.push(request.url ?? '')
      response.end(request.url === '/large' ? 'x'.repeat(8_000_000) : `hello from ${request.url}`)
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
  })
  afterAll(async () => {
    await harness?.dispose()
    server?.close()
    await engine?.close()
  })

  const test = it.skipIf(missing !== undefined)

  test('full is that of the engine', async () => {
    const inside = ['-t', String(engine.pid()), '-n']
    execFileSync('nsenter', [...inside, 'ip', 'address', 'add', `${OUTSIDE}/32`, 'dev', 'lo'])
    const outside = spawn('nsenter', [...inside, process.execPath, '-e', SERVE], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(outside.stdout, 'data')
    const task = python(`get('http://${OUTSIDE}/here')`)
    const open = await harness.run({ task, network: 'full' })
    expect(open.sink.text()).toBe('200 outside /here\n')
    expect(exitOf(open.outcome).isolation).toContain('network of the engine')
    const closed = await harness.run({ task })
    expect(closed.sink.text()).toBe(`no http://${OUTSIDE}/here\n`)
    const listed = await harness.run({ task: python(`ask('${OUTSIDE}', 80)`), network: ['example.org'] })
    expect(listed.sink.text()).toBe(`no ${OUTSIDE}\n`)
    outside.kill()
    await once(outside, 'exit')
  })

  test('a list of domains reaches what is listed, by plain HTTP and through a tunnel', async () => {
    const { outcome, sink } = await harness.run({
      task: python(
        `get('http://127.0.0.1:${port}/plain')`,
        `get('http://localhost:${port}/named')`,
        `connect('127.0.0.1:${port}', 'GET /tunnel HTTP/1.0\\r\\n\\r\\n')`,
        `print(len(urllib.request.urlopen('http://127.0.0.1:${port}/large').read()))`,
      ),
      network: [`127.0.0.1:${port}`, `localhost:${port}`],
    })
    expect(sink.text()).toBe(
      '200 hello from /plain\n200 hello from /named\nHTTP/1.1 200 Connection established\nhello from /tunnel\n8000000\n',
    )
    expect(exitOf(outcome).isolation).toContain(`network: only 127.0.0.1:${port}, localhost:${port}`)
  })

  test('a list of domains is all there is: no other address, name, container or private address', async () => {
    const other = await harness.launch({
      task: 'python3 -m http.server 8000 & echo on; sleep 100',
      network: 'full',
    })
    await other.sink.until(sink => sink.text().includes('on'), 'the other container runs')
    const before = asked.length
    const { sink } = await harness.run({
      task: python(
        `get('http://127.0.0.1:${port}/', direct=True)`,
        `ask('127.0.0.1', ${port})`,
        ...['172.17.0.1', '10.88.0.1', '172.17.0.2', '10.88.0.2'].map(address => `ask('${address}', 8000)`),
        `ask('example.org', 80)`,
        `import os; os.environ.update(no_proxy='', NO_PROXY='')`,
        `get('http://127.0.0.1:${port}/')`,
        `get('http://10.0.0.1/')`,
        `get('http://[::1]:${port}/')`,
        `connect('169.254.169.254:80', 'GET / HTTP/1.0\\r\\n\\r\\n')`,
        `print(sorted(os.listdir('/sys/class/net')))`,
      ),
      network: ['*.allowed.example', 'localhost:2'],
    })
    const told = sink.text()
    expect(told).not.toContain('connected')
    expect(told).not.toMatch(/^200/m)
    for (const line of [
      `403 127.0.0.1:${port} is not in the network list`,
      '403 10.0.0.1:80 is not in the network list',
      'HTTP/1.1 403 Forbidden',
      "['lo']",
    ])
      expect(told).toContain(line)
    expect(asked.length).toBe(before)
    other.stop('cancel')
    await other.outcome
  })

  test('a list of domains comes back with the next daemon, and when the job has killed its proxy', async () => {
    const launched = await harness.launch({
      task: python(
        'import os, signal, time',
        'def eventually(url):',
        '    for _ in range(600):',
        '        try: return print(urllib.request.urlopen(url, timeout=10).read().decode(), flush=True)',
        '        except OSError: time.sleep(0.1)',
        `eventually('http://127.0.0.1:${port}/first')`,
        "while not os.path.exists('/work/go'): time.sleep(0.1)",
        `eventually('http://127.0.0.1:${port}/again')`,
        "os.kill(int(open('/run/deputy/connections.pid').read()), signal.SIGKILL)",
        `eventually('http://127.0.0.1:${port}/mended')`,
      ),
      network: [`127.0.0.1:${port}`],
    })
    await launched.sink.until(sink => sink.text().includes('first'), 'it runs')
    launched.detach()
    await launched.outcome
    await harness.restart()
    const again = harness.reattach(launched, launched.sink.position)
    await touchInContainer(engine, launched.machine.id, '/work/go')
    expect(exitOf(await again.outcome).code).toBe(0)
    expect(launched.sink.text() + again.sink.text()).toBe(
      'hello from /first\nhello from /again\nhello from /mended\n',
    )
    await harness.provider.destroy(launched.machine, AbortSignal.timeout(60_000))
  })

  test('a list of domains needs perl in the image, which is said before anything runs', async () => {
    await importBusybox(engine)
    const { outcome } = await harness.run({ task: 'true', image: BUSYBOX, network: ['example.org'] })
    expect(outcome).toMatchObject({
      kind: 'not-started',
      error: { code: 'unsupported', message: expect.stringContaining(`'${BUSYBOX}' has no perl`) },
    })
  })

  test('a kept container refuses what only a new one can have', async () => {
    const network = [`127.0.0.1:${port}`]
    const first = await harness.launch({ task: 'true', network })
    expect(exitOf(await first.outcome).code).toBe(0)
    const next = async (more: object) => {
      const input = {
        task: python(`get('http://127.0.0.1:${port}/kept')`),
        machine: first.machine.id,
        ...more,
      }
      const { outcome, sink } = await harness.launch(input, {}, first.machine)
      return { outcome: await outcome, text: sink.text() }
    }
    const refused = (what: string) => ({
      kind: 'not-started',
      error: { code: 'unsupported', message: expect.stringContaining(what) },
    })
    expect((await next({ network: 'full' })).outcome).toMatchObject(
      refused('was created without network full'),
    )
    expect((await next({ image: 'node:22' })).outcome).toMatchObject(refused(`has the image '${TOOLS}'`))
    expect((await next({ platform: 'linux/s390x' })).outcome).toMatchObject(
      refused("cannot change 'platform'"),
    )
    expect((await next({ resources: { cpu: 1 } })).outcome).toMatchObject(
      refused("cannot change 'resources'"),
    )
    for (let round = 0; round < 5; round++) {
      // The proxy of a job that was refused must not end that of the next.
      await next({ pull: 'never' })
      const kept = await next({ image: TOOLS })
      expect(exitOf(kept.outcome).isolation).toContain(`network: only ${network[0]}`)
      expect(kept.text).toBe('200 hello from /kept\n')
    }
    const closed = await next({ network: 'none' })
    expect(exitOf(closed.outcome).isolation).toContain('no network')
    expect(closed.text).toContain('no http')
  })
})

const touchInContainer = async (engine: TestEngine, machineId: string, path: string): Promise<void> => {
  const { text } = await engine.api('GET', `/v1.40/containers/deputy-${machineId}/json`)
  const { State } = JSON.parse(text) as { State: { Pid: number } }
  execFileSync('nsenter', ['-t', String(State.Pid), '-m', 'touch', path])
}
