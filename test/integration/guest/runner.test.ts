import { execFileSync, spawnSync } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pack } from 'tar-stream'
import { afterEach, describe, expect, it } from 'vitest'
import { createCertificate, pinOf } from '../../../src/guest/certificate.ts'
import type { GuestListener } from '../../../src/guest/listener.ts'
import type { GuestSpec } from '../../../src/guest/order-format.ts'
import { GUEST_LIMITS } from '../../../src/guest/rate-limiter.ts'
import { AppError } from '../../../src/jobs/errors.ts'
import { hasCurl } from '../../support/curl.ts'
import {
  createMemoryMachine,
  type MemoryMachine,
  serveMachine,
  startRunner,
  TOKEN,
} from '../../support/guest.ts'

const hasBusybox = (() => {
  try {
    execFileSync('busybox', ['true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()

const cleanups: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

const serve = async (memory: MemoryMachine, more = {}): Promise<GuestListener> => {
  const listener = await serveMachine(memory, more)
  cleanups.push(() => listener.close())
  return listener
}

const boot = (port: number, more: Parameters<typeof startRunner>[1] = {}) => {
  const runner = startRunner({ url: `http://127.0.0.1:${port}`, token: TOKEN }, more)
  cleanups.push(() => runner.stop())
  return runner
}

const sh = (script: string, more: Partial<GuestSpec> = {}) =>
  createMemoryMachine({ argv: ['sh', '-c', script], ...more })

/** Runs a job to the end of the runner and returns what came back. */
const run = async (memory: MemoryMachine, more: Parameters<typeof startRunner>[1] = {}) => {
  const listener = await serve(memory)
  const runner = boot(listener.port, more)
  await within(memory.exited)
  expect(await within(runner.done)).toBe(0)
  return runner
}

/** A wait with an end, so that a runner that hangs is told from a slow one. */
const within = <T>(promise: Promise<T>, ms = 40_000): Promise<T> => {
  let timer: NodeJS.Timeout
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the runner did not come to its end')), ms)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** A zombie that nobody has buried yet is not alive. */
const isAlive = (pid: string): boolean => {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

const sha = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

describe.skipIf(!hasCurl)('the runner', () => {
  it('runs a command and reports output and end', async () => {
    const memory = sh('echo out; echo err >&2; exit 3')
    const runner = await run(memory)
    expect(memory.stdout().toString()).toBe('out\n')
    expect(memory.stderr().toString()).toBe('err\n')
    expect(memory.state.exit).toEqual({ code: 3, signal: 0, ended: '' })
    expect(memory.state.startedCount).toBe(1)
    expect(runner.log()).toContain('switching off')
  })

  it.each(['dash', 'bash'])('works with %s', async shell => {
    try {
      execFileSync('sh', ['-c', `command -v ${shell}`], { stdio: 'ignore' })
    } catch {
      return
    }
    const memory = sh('printf "%s" "$A"; exit 7', { env: { A: "it's" } })
    await run(memory, { shell })
    expect(memory.stdout().toString()).toBe("it's")
    expect(memory.state.exit?.code).toBe(7)
  })

  it('leaves no core on the disk, and has the job go first when memory runs out', async () => {
    const memory = sh('ulimit -c; cat /proc/self/oom_score_adj')
    await run(memory)
    expect(memory.stdout().toString()).toBe('0\n500\n')
  })

  it('reports the end although what held the command is gone', async () => {
    const memory = sh('echo $$; kill -KILL $PPID; sleep 0.5; exit 3')
    await run(memory)
    expect(memory.state.exit).toMatchObject({ signal: 0 })
  })

  it('reports the end although its files are refused', async () => {
    const memory = sh('exit 3', { wantsFiles: true })
    memory.machine.job(memory.spec.jobId)!.files = async () => {
      throw new AppError('invalid', 'no')
    }
    await run(memory)
    expect(memory.state.exit).toMatchObject({ code: 3 })
  })

  it('passes arguments and values on as they are', async () => {
    const hostile = [
      '',
      ' ',
      "a'b",
      'a"b',
      '$(touch /tmp/pwned)',
      '`id`',
      '$HOME',
      'a\nb\n',
      '\n',
      '*',
      '-n',
      '--',
      'ünï→😀',
      '\\n',
      '%s',
      'a;b',
      '\t',
    ]
    const script = 'for v in "$@"; do printf "[%s]" "$v"; done; printf "{%s}" "$A" "$B" "$a" "$v"'
    const memory = createMemoryMachine({
      argv: ['sh', '-c', script, 'sh', ...hostile],
      env: { A: hostile.join('|'), a: 'lower', key: 'x', rest: 'y' },
      secrets: { B: 'se"cret$(id)\n' },
    })
    await run(memory)
    expect(memory.stdout().toString()).toBe(
      `${hostile.map(value => `[${value}]`).join('')}{${hostile.join('|')}}{se"cret$(id)\n}{lower}{\t}`,
    )
  })

  it('gives the command a clean environment and a workspace of its own', async () => {
    const memory = sh('env | sort; pwd; ls -a', {
      env: { PATH: '/bin:/usr/bin', LD_LIBRARY_PATH: '/nowhere' },
    })
    const runner = await run(memory, { env: { LEAK: 'leaked' } })
    const output = memory.stdout().toString()
    expect(output).not.toContain('leaked')
    expect(output).not.toContain('DEPUTY_ROOT')
    expect(output).toContain(`HOME=${runner.root}/work`)
    expect(output).toContain('LD_LIBRARY_PATH=/nowhere')
    expect(output).not.toMatch(/^__/m)
  })

  it('leaves no secret on the disk or in an argument', async () => {
    const secret = `correct-horse-${randomUUID()}`
    const memory = sh('cat /proc/$$/cmdline | tr "\\0" " "; ps ax -o args 2>/dev/null; sleep 1', {
      secrets: { S: secret },
    })
    const listener = await serve(memory)
    const runner = boot(listener.port)
    await expect.poll(() => memory.state.startedCount, { timeout: 20_000 }).toBe(1)
    // What is looked for is in no argument of ours either: the job lists those of all processes.
    const filesWith = (words: string[]) =>
      spawnSync('grep', ['-rlF', '-f', '-', runner.root], { input: words.join('\n'), encoding: 'utf8' })
        .stdout
    expect(filesWith([secret])).toBe('')
    await within(memory.exited)
    expect(memory.stdout().toString()).not.toContain(secret)
    expect(memory.stdout().toString()).not.toContain(TOKEN)
    await within(runner.done)
    expect(filesWith([secret, TOKEN])).toBe('')
  })

  it.each([
    ['kill -9 $$', { code: 0, signal: 9, ended: '' }],
    ['kill -TERM $$', { code: 0, signal: 15, ended: '' }],
    ['exit 137', { code: 137, signal: 0, ended: '' }],
    ['exit 255', { code: 255, signal: 0, ended: '' }],
    ['true', { code: 0, signal: 0, ended: '' }],
  ])('tells exactly how "%s" ended', async (script, end) => {
    const memory = sh(script)
    await run(memory)
    expect(memory.state.exit).toEqual(end)
  })

  it('reports a command that does not exist', async () => {
    const memory = createMemoryMachine({ argv: ['/no/such/program'] })
    await run(memory)
    expect(memory.state.exit?.code).toBe(127)
    expect(memory.stderr().toString()).toContain('/no/such/program')
  })

  it('ends a command in time, its children too, and says that it did', async () => {
    const memory = sh('trap "" TERM; sleep 300 & echo $!; while :; do sleep 1; done', {
      timeoutSeconds: 1,
      graceSeconds: 1,
    })
    await run(memory)
    expect(memory.state.exit).toMatchObject({ signal: 9, ended: 'timeout' })
    expect(isAlive(memory.stdout().toString().trim())).toBe(false)
  })

  it('lets a command end by itself when it is asked to', async () => {
    const memory = sh('trap "echo bye; exit 5" TERM; echo ready; while :; do sleep 0.1; done', {
      graceSeconds: 20,
    })
    const listener = await serve(memory)
    const runner = boot(listener.port)
    await expect.poll(() => memory.stdout().toString(), { timeout: 20_000 }).toContain('ready')
    memory.state.order = 'stop'
    await within(memory.exited)
    await within(runner.done)
    expect(memory.state.exit).toEqual({ code: 5, signal: 0, ended: 'stopped' })
    expect(memory.stdout().toString()).toBe('ready\nbye\n')
  })

  it('sends a heartbeat while nothing is printed', async () => {
    const memory = sh('sleep 3')
    await run(memory)
    expect(memory.state.heartbeats).toBeGreaterThanOrEqual(2)
  })

  it('brings 50 MB of output back, byte for byte', async () => {
    const script =
      'i=0; while [ $i -lt 50 ]; do head -c 1048576 /dev/zero | tr "\\0" "$(printf %x $((i % 16)))"; i=$((i+1)); done; echo done >&2'
    const memory = sh(script)
    await run(memory)
    const expected = createHash('sha256')
    for (let i = 0; i < 50; i++) expected.update(Buffer.alloc(1_048_576, (i % 16).toString(16)))
    expect(memory.stdout().length).toBe(50 * 1_048_576)
    expect(sha(memory.stdout())).toBe(expected.digest('hex'))
    expect(memory.stderr().toString()).toBe('done\n')
  })

  it('sends what was printed before first', async () => {
    const memory = sh('echo a; sleep 1; echo b; sleep 0.1; echo c >&2; sleep 1')
    await run(memory)
    const order = memory.state.frames.map(frame => frame.stream).join(' ')
    expect(order).toBe('stdout stdout stderr')
  })

  it('keeps binary output as it is', async () => {
    const memory = sh('i=0; while [ $i -lt 256 ]; do printf "\\\\$(printf %03o $i)"; i=$((i+1)); done')
    await run(memory)
    expect(memory.stdout().equals(Buffer.from(Array.from({ length: 256 }, (_, i) => i)))).toBe(true)
  })

  it.skipIf(!hasBusybox)(
    'needs no more than busybox and curl (skipped where busybox is not installed)',
    async () => {
      const tools = mkdtempSync(join(tmpdir(), 'busybox-'))
      cleanups.push(() => rmSync(tools, { recursive: true, force: true }))
      execFileSync('busybox', ['--install', '-s', tools])
      symlinkSync(
        execFileSync('sh', ['-c', 'command -v curl'], { encoding: 'utf8' }).trim(),
        join(tools, 'curl'),
      )
      const memory = sh(
        'printf "%s" "$A"; mkdir d; echo one >"d/a b"; ln "d/a b" d/twin; echo 2 >"d/new\nline"; chmod 755 d/twin; exit 7',
        {
          env: { A: "it's" },
          wantsFiles: true,
        },
      )
      memory.state.wanted = ['d/a b', 'd/new\nline', 'absent']
      await run(memory, { shell: join(tools, 'ash'), tools })
      expect(memory.stdout().toString()).toBe("it's")
      expect(memory.state.exit?.code).toBe(7)
      expect(memory.state.listComplete).toBe(true)
      expect(memory.state.listed).toEqual(
        expect.arrayContaining([
          { path: 'd/a b', type: 'file', size: 4, mode: 0o755, modified: expect.any(Number) },
          { path: 'd/new\nline', type: 'file', size: 2, mode: 0o600, modified: expect.any(Number) },
        ]),
      )
      expect(memory.state.artifacts.get('d/a b')?.toString()).toBe('one\n')
      expect(memory.state.artifacts.get('d/new\nline')?.toString()).toBe('2\n')
    },
  )

  it('unpacks what it is given and brings back what is asked for, through odd names', async () => {
    const tar = pack()
    tar.entry({ name: 'in put.txt' }, 'given')
    tar.finalize()
    const chunks: Buffer[] = []
    for await (const chunk of tar) chunks.push(chunk as Buffer)
    const odd = 'di r/ünï\n\'"$(x).txt'
    const memory = sh('mkdir "di r"; cat "in put.txt" > "$1"; ln -s /etc/passwd link; printf big > other', {
      inputs: ['workspace'],
      wantsFiles: true,
    })
    const withArgument = { ...memory.spec, argv: [...memory.spec.argv, 'sh', odd] }
    const again = createMemoryMachine(withArgument)
    again.state.inputs = [Buffer.concat(chunks)]
    again.state.wanted = [odd, 'absent']
    again.state.wantedNext = ['other']
    await run(again)
    expect(again.state.exit?.code).toBe(0)
    expect(again.state.artifacts.get(odd)?.toString()).toBe('given')
    expect(again.state.artifacts.get('other')?.toString()).toBe('big')
    expect(again.state.listed.map(file => [file.type, file.path]).sort()).toEqual(
      [
        ['file', 'in put.txt'],
        ['file', odd],
        ['file', 'other'],
        ['link', 'link'],
      ].sort(),
    )
    expect(again.state.listed.find(file => file.path === odd)).toMatchObject({ size: 5, mode: 0o600 })
    expect(again.state.listComplete).toBe(true)
    expect(again.state.uploads).toBe(2)
  })

  it('stops everything and switches off when the daemon has no use for it any more', async () => {
    const memory = sh('echo $$; exec sleep 300')
    const listener = await serve(memory)
    const runner = boot(listener.port)
    await expect.poll(() => memory.stdout().length, { timeout: 20_000 }).toBeGreaterThan(0)
    memory.state.alive = false
    expect(await within(runner.done)).toBe(0)
    expect(isAlive(memory.stdout().toString().trim())).toBe(false)
  })

  it('refuses to start without the daemon knowing of it', async () => {
    const memory = createMemoryMachine({ argv: ['sh', '-c', 'echo ran'] })
    memory.machine.job = () => undefined
    const listener = await serve(memory)
    const runner = boot(listener.port)
    await expect.poll(() => memory.state.workCount, { timeout: 20_000 }).toBeGreaterThan(1)
    memory.state.alive = false
    await within(runner.done)
    expect(memory.stdout().length).toBe(0)
  })

  it('speaks HTTPS to whoever holds the key it was told, by any address', async () => {
    const certificate = createCertificate({ commonName: 'deputy' })
    const memory = sh('echo safe')
    const calls: string[] = []
    const onCall = (kind: string, status: number) => void calls.push(`${kind} ${status}`)
    const listener = await serve(memory, { tls: certificate, onCall })
    const runner = startRunner({
      url: `https://127.0.0.1:${listener.port}`,
      token: TOKEN,
      pin: pinOf(certificate.cert),
    })
    cleanups.push(() => runner.stop())
    await within(memory.exited)
    await within(runner.done)
    expect(memory.stdout().toString()).toBe('safe\n')
    // Over the connection of the order: another handshake would cost as much as another program.
    expect(calls).toContain('begin 200')
  })

  it('says nothing to somebody else with a certificate for the same address', async () => {
    const memory = sh('echo leaked')
    const listener = await serve(memory, {
      tls: createCertificate({ commonName: 'deputy', names: ['127.0.0.1'] }),
    })
    const wire = await startWire(listener.port)
    const runner = startRunner({
      url: `https://127.0.0.1:${wire.port}`,
      token: TOKEN,
      pin: pinOf(createCertificate({ commonName: 'deputy' }).cert),
    })
    cleanups.push(() => runner.stop())
    await expect.poll(() => wire.connections, { timeout: 20_000 }).toBeGreaterThan(1)
    expect(memory.state.workCount).toBe(0)
  })

  it('finds the daemon by a name that no server of names knows', async () => {
    const memory = sh('echo found')
    const listener = await serve(memory)
    const runner = startRunner({
      url: `http://callback.invalid:${listener.port}`,
      token: TOKEN,
      resolve: `callback.invalid:${listener.port}:127.0.0.1`,
    })
    cleanups.push(() => runner.stop())
    await within(memory.exited)
    await within(runner.done)
    expect(memory.stdout().toString()).toBe('found\n')
  })
})

/** A wire between runner and listener that can be cut. */
const startWire = async (target: number) => {
  const sockets = new Set<Socket>()
  const wire = { cut: false, dropAnswers: 0, port: 0, connections: 0 }
  const { connect } = await import('node:net')
  const server: Server = createServer(client => {
    wire.connections++
    sockets.add(client)
    client.on('close', () => sockets.delete(client))
    client.on('error', () => {})
    if (wire.cut) return void client.destroy()
    const upstream = connect(target, '127.0.0.1')
    upstream.on('error', () => client.destroy())
    client.on('close', () => upstream.destroy())
    client.pipe(upstream)
    upstream.on('data', chunk => {
      // The request arrived and was dealt with, but nobody hears the answer.
      if (wire.dropAnswers > 0 && chunk.includes('200 OK')) {
        wire.dropAnswers--
        return void client.destroy()
      }
      client.write(chunk)
    })
    upstream.on('end', () => client.end())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  wire.port = (server.address() as { port: number }).port
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise(resolve => server.close(resolve))
  })
  return Object.assign(wire, {
    sever: () => {
      wire.cut = true
      for (const socket of sockets) socket.destroy()
    },
  })
}

describe.skipIf(!hasCurl)('when the network is cut', () => {
  const counting =
    'i=0; while [ $i -lt 600 ]; do echo "line $i"; [ $((i % 7)) = 0 ] && echo "err $i" >&2; i=$((i+1)); [ $((i % 20)) = 0 ] && sleep 0.1; done'
  const lines = Array.from({ length: 600 }, (_, i) => `line ${i}\n`).join('')
  const errors = Array.from({ length: 600 }, (_, i) => i)
    .filter(i => i % 7 === 0)
    .map(i => `err ${i}\n`)
    .join('')

  it('nothing is lost and nothing comes twice', async () => {
    const memory = sh(counting)
    const listener = await serve(memory)
    const wire = await startWire(listener.port)
    const runner = boot(wire.port)
    await expect.poll(() => memory.state.position, { timeout: 20_000 }).toBeGreaterThan(0)
    wire.sever()
    const before = wire.connections
    await expect.poll(() => wire.connections, { timeout: 20_000 }).toBeGreaterThan(before + 2)
    wire.cut = false
    await within(memory.exited)
    await within(runner.done)
    expect(memory.stdout().toString()).toBe(lines)
    expect(memory.stderr().toString()).toBe(errors)
    expect(memory.state.exit?.code).toBe(0)
  })

  it('a frame whose answer was lost is recognised when it comes again', async () => {
    const memory = sh(counting)
    const listener = await serve(memory)
    const wire = await startWire(listener.port)
    const runner = boot(wire.port)
    await expect.poll(() => memory.state.position, { timeout: 20_000 }).toBeGreaterThan(0)
    wire.dropAnswers = 6
    await within(memory.exited)
    await within(runner.done)
    expect(memory.stdout().toString()).toBe(lines)
    expect(memory.stderr().toString()).toBe(errors)
    expect(memory.state.duplicates).toBeGreaterThan(0)
  })

  it('a daemon that asks it to wait is not pressed, and nothing is lost', async () => {
    const memory = sh('for i in $(seq 1 30); do echo $i; sleep 0.03; done; echo kept > file', {
      wantsFiles: true,
    })
    memory.state.wanted.push('file')
    let refused = 0
    const listener = await serve(memory, {
      limits: { ...GUEST_LIMITS, perSecond: 2, burst: 3 },
      onCall: (_: string, status: number) => {
        if (status === 429) refused++
      },
    })
    await boot(listener.port).done
    expect(refused).toBeGreaterThan(0)
    expect(refused).toBeLessThan(20)
    expect(memory.stdout().toString()).toBe(Array.from({ length: 30 }, (_, i) => `${i + 1}\n`).join(''))
    expect(memory.state.artifacts.get('file')?.toString()).toBe('kept\n')
    expect(memory.state.exit).toMatchObject({ code: 0 })
  })

  it('the end of the job waits for the network, not the other way round', async () => {
    const memory = sh('echo first; sleep 1; echo second; exit 4')
    const listener = await serve(memory)
    const wire = await startWire(listener.port)
    const runner = boot(wire.port)
    await expect.poll(() => memory.stdout().toString(), { timeout: 20_000 }).toContain('first')
    wire.sever()
    // By now the command is over; its parent waits with the result.
    await expect
      .poll(() => readdirSync(join(runner.root, 'run/deputy')).includes('ended'), { timeout: 20_000 })
      .toBe(true)
    expect(memory.state.exit).toBeUndefined()
    wire.cut = false
    await within(memory.exited)
    expect(memory.stdout().toString()).toBe('first\nsecond\n')
    expect(memory.state.exit).toMatchObject({ code: 4 })
  })

  it('a machine that boots before its network asks until it is there', async () => {
    const memory = sh('echo hello')
    const listener = await serve(memory)
    const wire = await startWire(listener.port)
    wire.cut = true
    const runner = boot(wire.port)
    await expect.poll(() => wire.connections, { timeout: 20_000 }).toBeGreaterThan(1)
    wire.cut = false
    await within(memory.exited)
    await within(runner.done)
    expect(memory.stdout().toString()).toBe('hello\n')
    expect(readFileSync(join(runner.root, 'runner'), 'utf8')).toContain('Deputy')
  })
})
