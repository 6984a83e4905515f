import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestCli, MAIN, type TestCli } from '../../support/cli.ts'
import { createSshLab, missingForSshLab, type SshLab, waitFor } from '../../support/sshlab.ts'

const missing = missingForSshLab()

describe.skipIf(missing !== undefined)(
  `nodes on the command line${missing ? ` (skipped: ${missing})` : ''}`,
  () => {
    let lab: SshLab
    let cli: TestCli
    const file = (): string => join(cli.home, 'config/config.yaml')
    const destination = (index: number): string => {
      const node = lab.nodes[index]!
      return `${lab.user}@${node.address}:${node.port}`
    }

    beforeAll(async () => {
      lab = await createSshLab({ nodes: 2 })
      cli = createTestCli()
      mkdirSync(join(cli.home, 'config'), { recursive: true })
      writeFileSync(
        file(),
        '# mine\nhost:\n  allow: true # yes\ncluster:\n  localName: here\n  ssh: { configFile: none }\n  thresholds: { cpu: 100, memory: 100, load: 9999 }\n',
      )
    })
    afterAll(async () => {
      await cli?.close()
      await lab?.close()
    })

    it('are none at first, and the answer says how to add one', async () => {
      expect((await cli.run(['nodes'])).stdout).toContain('deputy nodes add user@host')
    })

    it('are probed and written to the file, and the rest of the file stays as it was', async () => {
      const added = await cli.run([
        'nodes',
        'add',
        destination(0),
        '--id',
        'one',
        '--alias',
        'uno',
        '-i',
        lab.identity,
      ])
      expect(added).toMatchObject({ code: 0 })
      expect(added.stdout).toContain('one: linux')
      const two = await cli.run([
        'nodes',
        'add',
        destination(1),
        '--id',
        'two',
        '-i',
        lab.identity,
        '--max-tasks',
        '3',
      ])
      expect(two.code).toBe(0)
      const text = readFileSync(file(), 'utf8')
      expect(text).toContain('# mine')
      expect(text).toContain('allow: true # yes')
      expect(text).toContain('localName: here')
      const nodes = await cli.json<Record<string, unknown>[]>(['nodes', 'list', '--json'])
      expect(nodes).toMatchObject([
        { id: 'one', aliases: ['uno'], os: 'linux', capabilities: expect.arrayContaining(['bash']) },
        { id: 'two', max_tasks: 3 },
      ])
    })

    it('are refused with a reason when they do not answer, and nothing is written', async () => {
      const before = readFileSync(file(), 'utf8')
      const off = await cli.run(['nodes', 'add', 'me@127.0.0.1:1', '--id', 'off'])
      expect(off.code).not.toBe(0)
      expect(off.stderr).toContain('cannot be reached')
      const twice = await cli.run(['nodes', 'add', destination(0), '--id', 'one', '-i', lab.identity])
      expect(twice.stderr).toContain("Node 'one' already exists.")
      const wrong = await cli.run(['nodes', 'add', '--', '-oProxyCommand=x'])
      expect(wrong.code).toBe(2)
      for (const [flags, problem] of [
        [['-i', '/no/such/key'], 'Key file /no/such/key does not exist.'],
        [['--priority', '99'], '--priority too big'],
        [['--id', 'local'], '--id "local" is the name of this computer.'],
        [['--jump', 'a b'], '--jump must be [user@]host[:port]'],
        [['--label', 'x'], '--label takes K=V'],
      ] as const) {
        const refused = await cli.run(['nodes', 'add', destination(0), ...flags])
        expect(refused.stderr).toContain(problem)
        expect(refused.stderr).toContain('deputy nodes --help')
      }
      expect(readFileSync(file(), 'utf8')).toBe(before)
    })

    it('are checked', async () => {
      const check = await cli.run(['nodes', 'check'])
      expect(check.stdout).toMatch(/one +(healthy|overloaded) +linux/)
      const json = await cli.json<Record<string, unknown>[]>(['nodes', 'check', 'uno', '--json'])
      expect(json).toMatchObject([{ id: 'one', os: 'linux' }])
    })

    it('run jobs by name and by requirement', async () => {
      const named = await cli.run(['run', '--node', 'two', '--', 'echo', 'on a node'])
      expect(named, named.stderr).toMatchObject({ code: 0, stdout: 'on a node\n' })
      const [{ isolates } = {}] = await cli.json<{ isolates?: boolean }[]>([
        'nodes',
        'check',
        'two',
        '--json',
      ])
      const { isolation } = await cli.json<{ isolation: string[] }>(['result', 'last', '--json'])
      expect(isolation[0]).toMatch(isolates ? /^namespaces \(bubblewrap\)$/ : /^none: ran on two as .* \(/)
      const fitting = await cli
        .json<Record<string, unknown>>([
          ...['run', '--json', '--runtime', 'ssh', '--requires', 'os=linux,capabilities=bash'],
          ...['--', 'exit 3'],
        ])
        .catch(error => error)
      expect(JSON.stringify(fitting)).toContain('executed_on')
      const none = await cli.run(['run', '--runtime', 'ssh', '--requires', 'os=plan9', '--', 'true'])
      expect(none.code).toBe(2)
      expect(none.stderr).toContain('no node fits os=plan9')
    })

    it('keep one copy of a directory, however often it changes', async () => {
      const directory = join(cli.home, 'project')
      mkdirSync(directory)
      for (const text of ['one', 'two']) {
        writeFileSync(join(directory, 'file'), text)
        const run = await cli.run(['run', '--node', 'two', '--workspace', directory, '--', 'cat', 'file'])
        expect(run, run.stderr).toMatchObject({ code: 0, stdout: text })
      }
      const trees = lab.nodes[1]!.inside(`ls -d ${lab.nodes[1]!.home}/.cache/deputy/*/trees/*`)
      expect(trees.trim().split('\n')).toHaveLength(1)
    })

    const routed = (command: string) =>
      cli.json<Record<string, unknown>>(['cluster', 'submit', '--json', '--node', 'two', command])

    it('take routed commands', async () => {
      const heavy = await cli.run(['cluster', 'submit', 'make -n -f /dev/null 2>&1 | head -1; exit 4'])
      expect(heavy.stdout).toMatch(
        /^Task ID: \S+\nStatus: failed\nNode: (one|two)\nWhy: "make" is work for a node\. (one|two) scored best: .*\nOutput:\n/,
      )
      expect(heavy.code).toBe(4)
      const light = await cli.run(['cluster', 'submit', 'echo', 'it is here'])
      expect(light.stdout).toMatch(/Node: here\nWhy: it is a simple command.*\nOutput:\nit is here\n/)
      const id = /Task ID: (\S+)/.exec(light.stdout)![1]!
      expect(await cli.json<Record<string, unknown>>(['cluster', 'status', id])).toMatchObject({
        status: 'success',
      })
      const json = await routed('echo out; echo err >&2')
      expect(json).toMatchObject({
        success: true,
        executed_on: 'two',
        stdout: 'out\n',
        stderr: 'err\n',
        return_code: 0,
        auto_routed: false,
        why: 'two was requested by name.',
      })
      // It runs as whoever logs in, and says so.
      const { output, isolation } = await cli.json<{ output: string; isolation: string[] }>([
        ...['result', '--json', String((await routed('id -un')).task_id)],
      ])
      expect({ output, isolation }).toEqual({
        output: `${lab.user}\n`,
        isolation: [`none: ran on two as ${lab.user}`],
      })
      const words = await cli.run(['cluster', 'submit', '--node', 'two', 'printf', '%s-', 'a b', 'c', '-d'])
      expect(words.stdout).toMatch(/Why: two was requested by name\.\nOutput:\na b-c--d-\n/)
      expect(await cli.json(['cluster', 'status', 'last'])).toMatchObject({ task: "printf %s- 'a b' c -d" })
      expect(await cli.json(['cluster', 'status', String(json.task_id)])).toMatchObject({
        executed_on: { node: 'two', because: 'two was requested by name.' },
      })
      const status = await cli.json<{ nodes: Record<string, object> }>(['cluster', 'cluster-status'])
      expect(Object.keys(status.nodes)).toEqual(['here', 'one', 'two'])
      expect(status.nodes.here).toMatchObject({ running_tasks: 0, since: expect.any(String) })
      const dash = await cli.run(['cluster', 'submit', '--', '-oProxyCommand=true'])
      expect(dash.stdout).toContain('-oProxyCommand=true: command not found')
      expect(dash.code).toBe(127)
      for (const [requires, problem] of [
        ['os=', '--requires os= needs a value'],
        ['color=red', "not 'color'"],
        ['os=macos', 'No node fits os=macos: one runs linux; two runs linux'],
      ]) {
        const bad = await cli.run(['cluster', 'submit', '--requires', requires!, 'ls'])
        expect(bad).toMatchObject({ code: 2, stderr: expect.stringContaining(problem!) })
      }
      const refused = await cli.run(['cluster', 'submit', 'rm -rf /'])
      expect(refused.code).toBe(2)
      expect(refused.stderr).toContain('destroy-root')
    })

    it('are reached by cluster-router, a program of its own, as well', () => {
      const router = join(dirname(MAIN), 'cluster-router.js')
      const ask = (...args: string[]) =>
        spawnSync(process.execPath, [router, ...args], { env: cli.env, encoding: 'utf8' })
      expect(ask('submit', 'echo', 'by itself')).toMatchObject({
        status: 0,
        stdout: expect.stringMatching(/^Task ID: \S+\nStatus: success\nNode: here\n.*by itself\n$/s),
      })
      expect(JSON.parse(ask('status', 'last').stdout)).toMatchObject({ task: "echo 'by itself'" })
      expect(Object.keys(JSON.parse(ask('cluster-status').stdout).nodes)).toEqual(['here', 'one', 'two'])
      expect(ask('nonsense')).toMatchObject({ status: 2, stdout: '' })
    })

    it('count the tasks of the daemon for every client', async () => {
      const started = await cli.json<{ job_id: string }>([
        ...['run', '--json', '--detach', '--node', 'one', '--', 'sleep 60'],
      ])
      const tasks = async (): Promise<unknown> => {
        const status = await cli.json<{ nodes: Record<string, Record<string, unknown>> }>([
          ...['cluster', 'cluster-status'],
        ])
        return status.nodes.one!.running_tasks
      }
      await waitFor(async () => (await tasks()) === 1)
      await cli.run(['cancel', started.job_id])
      await waitFor(async () => (await tasks()) === 0)
    })

    it('are removed by any of their names', async () => {
      expect((await cli.run(['nodes', 'remove', 'uno'])).code).toBe(0)
      expect(await cli.json<Record<string, unknown>[]>(['nodes', '--json'])).toMatchObject([{ id: 'two' }])
      const gone = await cli.run(['nodes', 'remove', 'twoo'])
      expect(gone.stderr).toContain('two')
      expect(gone.code).toBe(2)
    })
  },
)
