import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { CLI, newHome, removeDirectory } from '../../support/daemon.ts'
import { until } from '../../support/engine.ts'
import { type Bridge, bridgeEnv, stopDaemonOf, talkTo } from '../../support/mcp/bridge.ts'
import { startCluster } from '../../support/pve.ts'

/** Starts the program that the configuration of a client for another system names, as that client would. */
const startServer = (
  program: string,
  { directory, cwd, env = {} }: { directory: string; cwd: string; env?: Record<string, string> },
): Bridge => {
  const file = join(CLI, '..', `${program}.js`)
  return talkTo(
    spawn(process.execPath, [file], { cwd, env: bridgeEnv(directory, env), stdio: ['pipe', 'pipe', 'pipe'] }),
  )
}

const directories: string[] = []
const bridges: Bridge[] = []

const fresh = (): string => {
  directories.push(realpathSync(newHome()))
  return directories.at(-1)!
}

const open = async (
  program: string,
  options: { directory: string; cwd?: string; env?: Record<string, string>; capabilities?: object },
): Promise<Bridge> => {
  const bridge = startServer(program, { cwd: options.directory, ...options })
  bridges.push(bridge)
  await bridge.initialize(options.capabilities)
  return bridge
}

const call = async (bridge: Bridge, name: string, args: object = {}): Promise<Record<string, unknown>> => {
  const { result } = await bridge.ask('tools/call', { name, arguments: args })
  const { isError, content } = result as { isError?: boolean; content: { text: string }[] }
  return isError ? { isError, text: content[0]!.text } : JSON.parse(content[0]!.text)
}

const toolNames = async (bridge: Bridge): Promise<string[]> => {
  const { result } = await bridge.ask('tools/list')
  return (result as { tools: { name: string }[] }).tools.map(tool => tool.name)
}

afterEach(async () => {
  for (const bridge of bridges) bridge.process.kill('SIGKILL')
  await Promise.all(bridges.splice(0).map(bridge => bridge.ended))
})

afterAll(async () => {
  for (const directory of directories) {
    await stopDaemonOf(directory)
    removeDirectory(directory)
  }
})

describe('mcp-delegation-server', () => {
  it('runs the examples of its README, which use /workspace', async () => {
    const bridge = await open('mcp-delegation-server', { directory: fresh() })
    expect(await toolNames(bridge)).toEqual(
      expect.arrayContaining(['submit_job', 'get_job_status', 'get_job_result', 'cancel_job', 'list_jobs']),
    )
    const base64 = (text: string): string => Buffer.from(text).toString('base64')
    const manifest = {
      task: 'npm test',
      agentType: 'script',
      agent: { command: "bash -c 'cd /workspace && npm install && npm test'" },
      files: [
        { path: '/workspace/code.py', content: base64('print(7)\n') },
        {
          path: '/workspace/package.json',
          content: base64(JSON.stringify({ scripts: { test: 'cat /workspace/code.py && pwd' } })),
        },
      ],
      artifacts: ['/workspace/*.py'],
      timeout: 300,
    }
    const submitted = await call(bridge, 'submit_job', { manifest })
    const result = await call(bridge, 'get_job_result', { job_id: submitted.job_id, wait_seconds: 50 })
    expect(result).toMatchObject({ status: 'success', exit_code: 0, artifacts: [{ path: 'code.py' }] })
    expect(result.output).toContain('print(7)\n/work')
  })

  it('shows the output so far for streaming, and only the progress for detailed', async () => {
    const bridge = await open('mcp-delegation-server', { directory: directories[0]! })
    const task = 'echo first; echo "$DEPUTY_PROGRESS half"; sleep 600'
    const status = async (statusMode: string): Promise<Record<string, unknown>> => {
      const { job_id } = await call(bridge, 'submit_job', { manifest: { task, statusMode } })
      let job = await call(bridge, 'get_job_status', { job_id })
      await until(async () => {
        job = await call(bridge, 'get_job_status', { job_id })
        return job.progress === 'half'
      }, 'its progress')
      await call(bridge, 'cancel_job', { job_id })
      return job
    }
    expect(await status('streaming')).toMatchObject({ output_tail: expect.stringContaining('first\n') })
    expect(await status('detailed')).not.toHaveProperty('output_tail')
  })

  it('reads .env in the working directory, but only settings that it had there', async () => {
    const directory = fresh()
    const cwd = join(directory, 'project')
    mkdirSync(cwd)
    writeFileSync(
      join(cwd, '.env'),
      'DEFAULT_TIMEOUT=77\nDEFAULT_MEMORY=512M\nDEPUTY_ALLOW_HOST=true\nCLUSTER_EVIL_HOST=evil.example\n',
    )
    const bridge = await open('mcp-delegation-server', { directory, cwd, env: { DEFAULT_MEMORY: '1G' } })
    const { job_id } = await call(bridge, 'submit_job', { manifest: 'true' })
    expect(await call(bridge, 'get_job_status', { job_id, wait_seconds: 50 })).toMatchObject({
      timeout_seconds: 77,
    })
    const refused = await call(bridge, 'submit_job', { manifest: { task: 'true', runtime: 'host' } })
    expect(refused).toMatchObject({ isError: true, text: expect.stringContaining('host') })
    expect(await toolNames(bridge)).not.toContain('cluster_bash')
  })
})

/** This computer is never overloaded. */
const CALM = {
  CLUSTER_CPU_THRESHOLD: '100',
  CLUSTER_LOAD_THRESHOLD: '10000',
  CLUSTER_MEMORY_THRESHOLD: '100',
}

describe('cluster-execution-mcp', () => {
  it('lists its four tools without any node, and says how to add one', async () => {
    const bridge = await open('cluster-execution-mcp', { directory: fresh() })
    expect((await toolNames(bridge)).sort()).toEqual([
      'cluster_bash',
      'cluster_status',
      'offload_to',
      'parallel_execute',
    ])
    const answer = await call(bridge, 'cluster_bash', { command: 'make -j8 all' })
    expect(answer).toMatchObject({ isError: true, text: expect.stringContaining('deputy nodes add') })
  })

  it('runs simple commands in the directory of the client when the user allows it', async () => {
    const directory = fresh()
    const cwd = join(directory, 'project')
    mkdirSync(cwd)
    writeFileSync(join(cwd, 'here.txt'), '')
    const env = { ...CALM, DEPUTY_ALLOW_HOST: 'true' }
    const bridge = await open('cluster-execution-mcp', { directory, cwd, env })
    expect(await call(bridge, 'cluster_bash', { command: 'ls' })).toMatchObject({
      success: true,
      stdout: 'here.txt\n',
      auto_routed: false,
    })
  })

  it('asks the user once whether commands may run here, where the client can ask', async () => {
    const directory = fresh()
    const ask = async (bridge: Bridge, answer?: { action: string; content?: object }) => {
      const params = { name: 'cluster_bash', arguments: { command: 'echo here; pwd' } }
      const { id, answer: called } = bridge.start('tools/call', params)
      if (answer !== undefined) {
        const question = await bridge.next('the question', ({ method }) => method === 'elicitation/create')
        expect(question.params?.message).toMatch(
          /^Run commands on this computer.* The first command: echo here; pwd$/,
        )
        bridge.send({ id: question.id, result: answer })
      }
      const { result } = await called
      // An answer without a question before it: the client was not asked again.
      expect(bridge.messages().filter(({ method }) => method === 'elicitation/create').length).toBeLessThan(2)
      return { id, text: JSON.stringify(result) }
    }
    const refusal = 'deputy config set host.allow true'
    const mute = await open('cluster-execution-mcp', { directory, env: CALM })
    expect((await ask(mute)).text).toContain(refusal)

    const first = await open('cluster-execution-mcp', { directory, capabilities: { elicitation: {} } })
    expect((await ask(first, { action: 'decline' })).text).toContain(refusal)
    expect((await ask(first)).text).toContain(refusal)

    for (const bridge of bridges) bridge.process.kill('SIGKILL')
    await stopDaemonOf(directory)
    const options = { directory, env: CALM, capabilities: { elicitation: {} } }
    const second = await open('cluster-execution-mcp', options)
    const yes = { action: 'accept', content: { confirm: true } }
    expect((await ask(second, yes)).text).toContain(`here\\n${directory}\\n`)
    expect((await ask(second)).text).toContain(`here\\n${directory}\\n`)
    expect(readFileSync(join(directory, 'config/config.yaml'), 'utf8')).toBe('host:\n  allow: true\n')
  })

  it('has the nodes and the settings of its variables, beside a client without them', async () => {
    const directory = fresh()
    const env = { ...CALM, DEPUTY_ALLOW_HOST: 'true' }
    const other = await open('mcp-delegation-server', { directory, env })
    const bridge = await open('cluster-execution-mcp', {
      directory,
      env: {
        ...{ CLUSTER_MACPRO51_HOST: '127.0.0.51', CLUSTER_INFERENCE_IP: '127.0.0.8' },
        CLUSTER_CMD_TIMEOUT: '77',
      },
    })
    const { nodes } = await call(bridge, 'cluster_status')
    expect(nodes).toMatchObject({ macpro51: expect.anything(), inference: expect.anything() })
    const timeouts = []
    for (const client of [bridge, await open('cluster-execution-mcp', { directory })]) {
      const { task_id } = await call(client, 'cluster_bash', { command: 'echo' })
      timeouts.push((await call(other, 'get_job_status', { job_id: task_id })).timeout_seconds)
    }
    expect(timeouts).toEqual([77, 300])
  })
})

describe('the nodes of a client', () => {
  const nodesOf = async (bridge: Bridge): Promise<string[]> => {
    const { nodes } = await call(bridge, 'cluster_status')
    return Object.keys(nodes as object).filter(name => name.startsWith('node-'))
  }
  const leave = async (bridge: Bridge): Promise<void> => {
    bridge.process.stdin?.end()
    expect(await bridge.ended).toBe(0)
  }
  const becomes = async (bridge: Bridge, expected: string[]): Promise<void> => {
    let nodes: string[] = []
    await until(
      async () => {
        nodes = await nodesOf(bridge)
        return nodes.join() === expected.join()
      },
      `the nodes ${expected.join()}`,
      30_000,
    ).catch(error => {
      throw new Error(`${error.message}: ${nodes.join()}`)
    })
  }

  it('leave with it, also those of the client that started the daemon', async () => {
    const directory = fresh()
    const A = { CLUSTER_NODE_A_HOST: '127.0.0.51', CLUSTER_NODE_A_USER: 'me' }
    const first = await open('cluster-execution-mcp', { directory, env: A })
    await becomes(first, ['node-a'])
    const other = await open('cluster-execution-mcp', { directory })
    const twin = await open('cluster-execution-mcp', { directory, env: A })
    const second = await open('cluster-execution-mcp', {
      directory,
      env: { CLUSTER_NODE_B_HOST: '127.0.0.52' },
    })
    await becomes(second, ['node-a', 'node-b'])
    await leave(first)
    await leave(second)
    await becomes(other, ['node-a'])
    await leave(twin)
    await becomes(other, [])
    const plain = await open('mcp-delegation-server', { directory })
    expect(await toolNames(plain)).not.toContain('cluster_bash')
    // The same settings again, after the last client with them has left.
    await becomes(await open('cluster-execution-mcp', { directory, env: A }), ['node-a'])
  })
})

describe('proxmox-mcp', () => {
  it('works as its snippet stands, beside a daemon that knows no cluster', async () => {
    const cluster = await startCluster()
    try {
      const directory = fresh()
      // A client without settings starts the daemon.
      const other = await open('mcp-delegation-server', { directory })
      expect(await toolNames(other)).not.toContain('list_nodes')
      const { PROXMOX_HOST, PROXMOX_TOKEN_NAME, PROXMOX_TOKEN_VALUE, PROXMOX_USER } = cluster.emulator.env()
      const [first] = cluster.emulator.endpoints
      const env = {
        PROXMOX_HOST: '127.0.0.1',
        PROXMOX_PORT: String(first!.port),
        PROXMOX_USER: PROXMOX_USER!,
        PROXMOX_TOKEN_NAME: PROXMOX_TOKEN_NAME!,
        PROXMOX_TOKEN_VALUE: PROXMOX_TOKEN_VALUE!,
        PROXMOX_SSL_MODE: 'verify',
      }
      expect(PROXMOX_HOST).toContain('127.0.0.1')
      const bridge = await open('proxmox-mcp', { directory, env })
      expect((await toolNames(bridge)).length).toBeGreaterThan(90)

      const refused = await call(bridge, 'proxmox_node', { action: 'list' })
      expect(refused.isError).toBe(true)
      const command = /deputy (proxmox trust \S+ --fingerprint \S+)/.exec(String(refused.text))![1]!
      // The emulator is in this process, so the command must not block it.
      const run = async (args: string[]): Promise<{ code: number; out: string }> => {
        const child = spawn(process.execPath, [CLI, ...args], { env: bridgeEnv(directory) })
        let out = ''
        for (const stream of [child.stdout, child.stderr])
          stream.on('data', chunk => {
            out += chunk
          })
        const [code] = await once(child, 'close')
        return { code, out }
      }
      const words = command.split(' ')
      const other32 = Array(32).fill('AB').join(':')
      expect(await run([...words.slice(0, -1), other32])).toMatchObject({
        out: expect.stringContaining('The fingerprint of 127.0.0.1'),
      })
      expect((await run(words.slice(0, 3))).out).toContain(`deputy ${command}`)
      expect(await run(words)).toMatchObject({ code: 0, out: expect.stringContaining('Trusted') })

      const nodes = await call(bridge, 'proxmox_node', { operation: 'list' })
      expect(JSON.stringify(nodes)).toContain('pve1')
      const change = await call(bridge, 'proxmox_pool', { action: 'create', poolid: 'mine' })
      expect(change).toMatchObject({ isError: true, text: expect.stringContaining('PROXMOX_ALLOW_ELEVATED') })

      // The settings of one client are not those of another.
      expect(await toolNames(other)).not.toContain('list_nodes')
      const elevated = await open('proxmox-mcp', {
        directory,
        env: { ...env, PROXMOX_ALLOW_ELEVATED: 'true' },
      })
      const allowed = await call(elevated, 'proxmox_pool', { action: 'create', poolid: 'mine' })
      expect(String(allowed.text ?? '')).not.toContain('PROXMOX_ALLOW_ELEVATED')
    } finally {
      await cluster.close()
    }
  })
})
