import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Client } from '../../../src/client/daemon-client.ts'
import type { AppError } from '../../../src/jobs/errors.ts'
import { isLeftoverError } from '../../../src/jobs/leftover-error.ts'
import type { Provider } from '../../../src/ports.ts'
import { openSshProvider } from '../../../src/providers/ssh/ssh-provider.ts'
import { blobsWithoutStore } from '../../support/blobs.ts'
import { createTestCli, type TestCli } from '../../support/cli.ts'
import { newHome, removeDirectory, startDaemon, type TestDaemon } from '../../support/daemon.ts'
import { type Bridge, startBridge } from '../../support/mcp/bridge.ts'
import { createSshLab, missingForSshLab, type SshLab, waitFor } from '../../support/sshlab.ts'

const missing = missingForSshLab()

describe.skipIf(missing !== undefined)(
  `the inventory of a running daemon${missing ? ` (skipped: ${missing})` : ''}`,
  () => {
    let lab: SshLab
    let directory: string
    let cli: TestCli
    let daemon: TestDaemon
    let bridge: Bridge
    const file = (): string => join(directory, 'config/config.yaml')
    const client = (): Client => daemon.client

    const add = (index: number, id: string) => {
      const node = lab.nodes[index]!
      const where = `${lab.user}@${node.address}:${node.port}`
      return cli.run(['nodes', 'add', where, '--id', id, '-i', lab.identity])
    }
    const tools = async (): Promise<string[]> => {
      const answer = await bridge.ask('tools/list')
      return (answer.result as { tools: { name: string }[] }).tools.map(tool => tool.name)
    }
    const runtimes = async (): Promise<string[]> => (await client().doctor()).map(each => each.runtime)
    const ended = (id: string): Promise<void> =>
      waitFor(async () => (await client().get(id)).completed_at !== null)
    const left = (index: number): string[] =>
      ['work', 'jobs'].flatMap(part => {
        const home = `${lab.nodes[index]!.home}/.cache/deputy`
        if (!existsSync(home)) return []
        return readdirSync(home).flatMap(owner => {
          const path = join(home, owner, part)
          // What waits for the next command is nothing that one has left.
          return existsSync(path) ? readdirSync(path).filter(name => !name.startsWith('.spare.')) : []
        })
      })
    const submit = (node: string, task: string, more: object = {}) =>
      client().submit({ task, runtime: 'node', network: 'full', requires: { node }, ...more })

    beforeAll(async () => {
      lab = await createSshLab({ nodes: 2 })
      directory = newHome()
      mkdirSync(join(directory, 'config'))
      writeFileSync(file(), 'cluster:\n  ssh: { configFile: none, connectTimeout: 2 }\n')
      daemon = await startDaemon({ directory })
      cli = createTestCli({ DEPUTY_HOME: directory, HOME: directory })
      bridge = startBridge({ directory })
      await bridge.initialize()
    })
    afterAll(async () => {
      bridge?.process.kill('SIGKILL')
      await daemon?.kill()
      await cli?.close()
      await lab?.close()
      if (directory) removeDirectory(directory)
    })

    it('is empty: no tools, no runtimes, and a job for a node says how to add one', async () => {
      expect(await tools()).not.toContain('cluster_bash')
      expect(await runtimes()).not.toContain('ssh')
      const refused = await cli.run(['run', '--node', 'one', '--', 'true'])
      expect(refused.code).toBe(2)
      expect(refused.stderr).toContain('the inventory has no nodes')
    })

    it('has a node as soon as it was added, for clients that are connected as well', async () => {
      const added = await add(0, 'one')
      expect(added.stdout, added.stderr).toContain('The daemon uses it now.')
      await bridge.next('the news', message => message.method === 'notifications/tools/list_changed')
      expect(await tools()).toContain('cluster_bash')
      expect(await runtimes()).toEqual(expect.arrayContaining(['ssh', 'node']))
      const run = await cli.run(['run', '--node', 'one', '--', 'echo', 'at once'])
      expect(run, run.stderr).toMatchObject({ code: 0, stdout: 'at once\n' })
      const settings = await cli.json<{ path: string; value: unknown }[]>([
        'config',
        'explain',
        'cluster',
        '--json',
      ])
      expect(JSON.stringify(settings.find(one => one.path === 'cluster.nodes')?.value)).toContain('"one"')
    })

    it('keeps what it has when the file is wrong, and says what is wrong with it', async () => {
      const good = readFileSync(file(), 'utf8')
      appendFileSync(file(), 'nonsense: 1\n')
      const refused = await cli.run(['nodes', 'reload'])
      expect(refused.code).toBe(2)
      expect(refused.stderr).toContain("unknown setting 'nonsense'")
      writeFileSync(file(), good.replace('- id: one', '- id: one\n      priority: 3'))
      expect((await cli.run(['nodes', 'reload'])).stdout).toBe('changed: one\n')
      expect((await cli.run(['nodes', 'reload'])).stdout).toBe('No nodes changed.\n')
      const before = readFileSync(file(), 'utf8')
      appendFileSync(file(), 'limits: { upload: 3G }\n')
      expect((await cli.run(['nodes', 'reload'])).stdout).toBe(
        'No nodes changed.\nNeeds deputy daemon restart: limits.upload\n',
      )
      writeFileSync(file(), before)
      const run = await cli.run(['run', '--node', 'one', '--', 'echo', 'still'])
      expect(run.stdout).toBe('still\n')
    })

    it('loses a node without losing what runs there', async () => {
      const job = await submit(
        'one',
        'echo begun; while [ ! -e "$HOME/go1" ]; do sleep 0.05; done; echo done; exit 3',
      )
      await waitFor(async () => (await client().get(job.job_id)).output_bytes > 0)
      expect((await add(1, 'two')).code).toBe(0)
      expect((await cli.run(['nodes', 'remove', 'one'])).stdout).toBe(
        'one removed. The daemon uses it now.\n',
      )
      const refused = await cli.run(['run', '--node', 'one', '--', 'true'])
      expect(refused.stderr).toContain("No node 'one'")
      writeFileSync(`${lab.nodes[0]!.home}/go1`, '')
      await ended(job.job_id)
      expect(await client().result(job.job_id)).toMatchObject({
        status: 'failed',
        exit_code: 3,
        output: 'begun\ndone\n',
        executed_on: { node: 'one' },
      })
      await waitFor(async () => (await client().machines()).length === 0)
      expect(left(0)).toEqual([])
    })

    it('cleans up a kept machine of a node that was removed', async () => {
      const job = await submit('two', 'echo kept > file', { runtime: 'ssh', lifecycle: 'persistent' })
      await ended(job.job_id)
      expect(await client().machines()).toMatchObject([{ state: 'kept' }])
      expect(left(1)).not.toEqual([])
      expect((await add(0, 'one')).code).toBe(0)
      expect((await cli.run(['nodes', 'remove', 'two'])).code).toBe(0)
      await client().destroyMachine((await client().machines())[0]!.machine_id)
      expect(await client().machines()).toEqual([])
      expect(left(1)).toEqual([])
    })

    it('finds a command again on a node that was removed while the daemon was away', async () => {
      const job = await submit(
        'one',
        'echo begun; while [ ! -e "$HOME/go2" ]; do sleep 0.05; done; echo done',
      )
      await waitFor(async () => (await client().get(job.job_id)).output_bytes > 0)
      // It would start the next daemon by itself.
      bridge.process.kill('SIGKILL')
      await bridge.ended
      await daemon.kill('SIGKILL')
      expect((await cli.run(['nodes', 'remove', 'one'])).stdout).toContain('uses it when it starts')
      daemon = await startDaemon({ directory })
      writeFileSync(`${lab.nodes[0]!.home}/go2`, '')
      await ended(job.job_id)
      expect(await client().result(job.job_id)).toMatchObject({ status: 'success', output: 'begun\ndone\n' })
      await waitFor(async () => (await client().machines()).length === 0)
      expect(left(0)).toEqual([])
    })
  },
)

describe.skipIf(missing !== undefined)('a machine on a node that was removed and is off', () => {
  const machine = (details: object, attempts: number) => ({
    ...{ id: 'm1', runtime: 'node', jobId: null, attempts },
    details: { node: 'gone', because: 'it was free', ...details },
  })
  const way = { host: '127.0.0.1', port: 1, user: 'ann' }
  const { signal } = new AbortController()
  let directory: string
  let provider: Provider
  beforeAll(() => {
    directory = newHome()
    const cluster = { ssh: { configFile: 'none', connectTimeout: 2 } }
    provider = openSshProvider({
      stateDir: directory,
      cluster,
      routed: true,
      blobs: blobsWithoutStore(directory),
    })
  })
  afterAll(async () => {
    await provider?.close()
    if (directory) removeDirectory(directory)
  })
  const failure = (details: object, attempts: number): Promise<AppError> =>
    provider.destroy(machine(details, attempts), signal).then(
      () => Promise.reject(new Error('it was said to be gone')),
      (error: AppError) => error,
    )

  it('is tried for a while, and each failure says where it is', async () => {
    const error = await failure({ way }, 0)
    expect(isLeftoverError(error)).toBe(false)
    expect(error.message).toMatch(
      /^Machine m1 is on node gone, which the inventory does not have any more: .*refused/,
    )
  })

  it('is left behind at last, with the place and what to do', async () => {
    const error = await failure({ way }, 5)
    expect(isLeftoverError(error)).toBe(true)
    expect(error.message).toContain('what the machine left at ann@127.0.0.1:1 stays there')
    expect(error.hint).toContain('rm -rf ~/.cache/deputy/')
  })

  it('is reported as left behind at once when its node was not recorded', async () => {
    const error = await failure({}, 0)
    expect(isLeftoverError(error)).toBe(true)
    expect(error.message).toContain('the way to it is not known')
  })
})
