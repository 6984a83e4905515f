import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Cluster } from '../../../src/nodes/cluster.ts'
import { failureError } from '../../../src/nodes/ssh/ssh-errors.ts'
import { createSshProvider } from '../../../src/providers/ssh/ssh-provider.ts'
import type { RunnerHost } from '../../../src/runner/channel.ts'
import { followOnce, releaseWorkspaces, stopRun } from '../../../src/runner/client.ts'
import type { FollowRunOptions } from '../../../src/runner/follow-run.ts'
import { newHome, removeDirectory, startDaemon } from '../../support/daemon.ts'
import { channelTo, followOn, hostOf, labCluster, runOn, startOf } from '../../support/labcluster.ts'
import { createHarness } from '../../support/providers.ts'
import { type Relay, startRelay } from '../../support/relay.ts'
import {
  createSshLab,
  missingForNamespaces,
  missingForSshLab,
  type SshLab,
  waitFor,
} from '../../support/sshlab.ts'

const missing = missingForSshLab()
const { signal } = new AbortController()
let next = 0
const newId = (): string => `h${process.pid}-${next++}`

/** A connection is found to be dead after a quarter of a minute. */
const DEAD_MS = 60_000

describe.skipIf(missing !== undefined)(
  `a command handed over a connection that is dead but open${missing ? ` (skipped: ${missing})` : ''}`,
  () => {
    let lab: SshLab
    let way: Relay
    const open: { dispose(): void | Promise<void> }[] = []
    beforeAll(async () => {
      lab = await createSshLab({ nodes: 2, mode: 'loopback' })
      way = await startRelay({ host: lab.nodes[0]!.address, port: lab.nodes[0]!.port })
    })
    afterEach(async () => {
      way.swallow(false)
      way.thaw()
      way.cut()
      for (const one of open.splice(0).reverse()) await one.dispose()
    })
    afterAll(async () => {
      await way?.close()
      await lab?.close()
    })

    const login = () => ({ user: lab.user, identity: lab.identity })
    const home = (): string => lab.nodes[0]!.home
    const clusterOf = (more: Parameters<typeof labCluster>[1] = {}): ReturnType<typeof labCluster> => {
      const near = { ...login(), id: 'n1', host: '127.0.0.1', port: way.port, priority: 1 }
      const other = { ...login(), id: 'n2', host: '127.0.0.1', port: lab.nodes[1]!.port, priority: 9 }
      const cluster = labCluster(lab, { nodes: [near, other], ...more })
      open.push(cluster)
      return cluster
    }
    const held = (host: RunnerHost, id: string, command: string, more: Partial<FollowRunOptions> = {}) =>
      followOn(host, id, { start: startOf({ id, command }), ...more })
    /** Cuts the connection when a session is open and before the request arrives in it. */
    const cutAtRequest = async (cluster: Cluster): Promise<void> => {
      await runOn(cluster, 'n1', { id: newId(), command: 'true' })
      way.freezeBefore(4096)
    }
    /** The late request has arrived, and the node has done something else since. */
    const delivered = async (cluster: Cluster): Promise<void> => {
      const before = way.heard()
      way.thaw()
      await waitFor(() => way.heard() > before)
      await runOn(cluster, 'n1', { id: newId(), command: 'sleep 0.2' })
    }
    const workspace = (id: string): string => join(home(), '.cache/deputy/test/work', id)
    const ran = (): boolean => existsSync(join(home(), 'ran'))

    it(
      'did not start when the node, asked anew, knows nothing of it, and never does',
      async () => {
        const cluster = clusterOf()
        await cutAtRequest(cluster)
        const end = await held(hostOf(cluster, 'n1'), newId(), 'echo ran >> "$HOME/ran"')
        expect(end).toMatchObject({ kind: 'not-started', error: { retryable: true } })
        expect(end.kind === 'not-started' && end.error.message).toContain('never arrived at node n1')
        // The request arrives after all, and finds that it comes too late.
        await delivered(cluster)
        expect(ran()).toBe(false)
      },
      DEAD_MS,
    )

    it(
      'is lost when the node does not answer any more, and does not start there once that is cleaned up',
      async () => {
        const cluster = clusterOf({ ssh: { connectTimeout: 1 } })
        await cutAtRequest(cluster)
        const id = newId()
        let undelivered = 0
        const end = await held(hostOf(cluster, 'n1'), id, 'echo ran >> "$HOME/ran"', {
          unsureMs: 100,
          onUndelivered: async () => {
            undelivered++
            way.swallow(true)
          },
        })
        expect(end).toMatchObject({ kind: 'lost', error: { retryable: false } })
        expect(end.kind === 'lost' && end.error.message).toContain('whether it ran is not known')
        expect(undelivered).toBe(1)
        way.swallow(false)
        const channel = await channelTo(cluster, 'n1')
        expect([...(await releaseWorkspaces(channel, { workspaces: ['m'], bar: [id], signal }))]).toEqual([
          'm',
        ])
        await delivered(cluster)
        expect(ran()).toBe(false)
      },
      DEAD_MS,
    )

    it(
      'is run by another node then, once',
      async () => {
        const home = newHome()
        const nodes = [
          { ...login(), id: 'n1', host: '127.0.0.1', port: way.port, priority: 1 },
          { ...login(), id: 'n2', host: '127.0.0.1', port: lab.nodes[1]!.port, priority: 9 },
        ]
        const thresholds = { cpu: 100, memory: 100, load: 1000 }
        mkdirSync(join(home, 'config'))
        writeFileSync(
          join(home, 'config/config.yaml'),
          JSON.stringify({ cluster: { nodes, thresholds, ssh: { configFile: 'none' } } }),
        )
        const { client, kill } = await startDaemon({ directory: home })
        const run = async (task: string) => {
          const { job_id } = await client.submit({ task, runtime: 'node', network: 'full' })
          return client.wait(job_id, { timeoutMs: DEAD_MS, signal })
        }
        expect((await run('true')).where).toBe('n1')
        // Its clean-up is a request, too, and not the one to be cut.
        await waitFor(async () => (await client.machines()).length === 0)
        way.freezeBefore(4096)
        const view = await run('echo "$DEPUTY_LAB_NODE" >> "$HOME/../../handed"')
        expect(view).toMatchObject({ status: 'success', attempts: 2, where: 'n2' })
        const before = way.heard()
        way.thaw()
        await waitFor(() => way.heard() > before)
        expect((await run('sleep 0.2')).status).toBe('success')
        await kill()
        expect(readFileSync(join(lab.directory, 'handed'), 'utf8')).toBe('n2\n')
        removeDirectory(home)
      },
      2 * DEAD_MS,
    )

    it('is not lost to requests of our own that come late, and is to those of others', async () => {
      const cluster = clusterOf()
      const host = hostOf(cluster, 'n1')
      const id = newId()
      const target = await cluster.target(cluster.find('n1'), signal)
      const late = async () =>
        followOnce(
          await host.connect(signal),
          { kind: 'follow', run: id, from: 0 },
          { signal, onOutput: () => {} },
        )
      // The start request arrives; the connection seems to be cut as soon as it has.
      let cut = false
      const spy: RunnerHost = {
        ...host,
        connect: async waiting => {
          const connection = await host.connect(waiting)
          if (cut) return connection
          cut = true
          return {
            ...connection,
            exchange: async (requests, handlers) => {
              await new Promise<void>(arrived => {
                const onAnswer = () => arrived()
                void connection.exchange(requests, { ...handlers, onAnswer })
              })
              return { cut: failureError(target, 'lost'), sent: true }
            },
          }
        },
      }
      let attached = 0
      const end = held(spy, id, 'while [ ! -e go ]; do sleep 0.05; done; exit 5', {
        onStarted: () => void attached++,
      })
      await waitFor(() => attached === 1)
      expect((await late()).kind).toBe('superseded')
      await waitFor(() => attached === 2)
      const second = late()
      expect((await end).kind).toBe('superseded')
      writeFileSync(join(workspace(id), 'go'), '')
      expect(await second).toMatchObject({ kind: 'exit', code: 5 })
    })

    it('is barred from its node when its machine is destroyed', async () => {
      const cluster = clusterOf()
      const harness = await createHarness((stateDir, blobs) =>
        createSshProvider({ cluster, blobs, routed: true, keyFile: join(stateDir, 'memo.key') }),
      )
      open.push(harness)
      const undelivered = newId()
      const machine = { id: newId(), runtime: 'node', jobId: null, details: { node: 'n1', undelivered } }
      await harness.provider.destroy(machine, signal)
      const { end } = await runOn(cluster, 'n1', { id: undelivered, command: 'echo ran >> "$HOME/ran"' })
      expect(end.kind).toBe('not-started')
      expect(ran()).toBe(false)
    })

    it('comes again to the machine it was meant for when it never arrived there', async () => {
      const cluster = clusterOf()
      const harness = await createHarness((stateDir, blobs) =>
        createSshProvider({ cluster, blobs, routed: true, keyFile: join(stateDir, 'memo.key') }),
      )
      open.push(harness)
      const first = await harness.launch({
        task: 'echo kept > file',
        network: 'full',
        requires: { node: 'n1' },
      })
      await first.outcome
      const job = { id: newId() }
      const run = `${first.machine.id}.${job.id}`
      await stopRun(await channelTo(cluster, 'n1'), { run, graceSeconds: 1, signal })
      const again = async (attempts: number) => {
        const task = { task: 'cat file', network: 'full' as const, machine: first.machine.id }
        const launched = await harness.launch(task, {}, first.machine, { ...job, attempts })
        return { ...(await launched.outcome), text: launched.sink.text() }
      }
      expect(await again(1)).toMatchObject({ kind: 'not-started' })
      expect(await again(2)).toMatchObject({ kind: 'exit', text: 'kept\n' })
    })

    it('may have run when the node was restarted and has no record of it', async () => {
      const cluster = clusterOf()
      const harness = await createHarness((stateDir, blobs) =>
        createSshProvider({ cluster, blobs, routed: true, keyFile: join(stateDir, 'memo.key') }),
      )
      open.push(harness)
      const launched = await harness.launch({ task: 'true', network: 'full', requires: { node: 'n1' } })
      await launched.outcome
      const { boot } = launched.machine.details
      const followed = async (details: object) => {
        const machine = { ...launched.machine, id: newId(), details: { node: 'n1', ...details } }
        return harness.reattach({ ...launched, machine }, 0).outcome
      }
      expect(boot).toBe(cluster.ssh.bootId('n1'))
      expect((await followed({ boot })).kind).toBe('not-started')
      const other = await followed({ boot: '00000000-0000-4000-8000-000000000000' })
      expect(other).toMatchObject({ kind: 'lost', error: { retryable: false } })
      expect(other.kind === 'lost' && other.error.message).toContain('was restarted')
    })
  },
)

const noNamespaces = missing ?? missingForNamespaces()

describe.skipIf(noNamespaces !== undefined)(
  `a node whose power is cut as it gets a command${noNamespaces ? ` (skipped: ${noNamespaces})` : ''}`,
  () => {
    it('may have run it, even if nothing of it is left there', async () => {
      const lab = await createSshLab({ nodes: 1, mode: 'namespaces' })
      const node = lab.nodes[0]!
      const enter = (life: number): void => {
        const file = join(lab.directory, `boot${life}`)
        writeFileSync(file, `0000000${life}-0000-4000-8000-000000000000\n`)
        node.inside(`mount --bind ${file} /proc/sys/kernel/random/boot_id`)
      }
      enter(1)
      const cluster = labCluster(lab)
      const id = newId()
      // The answer that it has started does not arrive.
      const host = hostOf(cluster, 'n1')
      const deaf: RunnerHost = {
        ...host,
        connect: async waiting => {
          const connection = await host.connect(waiting)
          const exchange: typeof connection.exchange = (requests, handlers) => {
            const onAnswer: typeof handlers.onAnswer = (answer, data) => {
              if (answer.kind !== 'started') handlers.onAnswer(answer, data)
            }
            return connection.exchange(requests, { ...handlers, onAnswer })
          }
          return { ...connection, exchange }
        },
      }
      const end = followOn(deaf, id, { start: startOf({ id, command: 'echo x >> "$HOME/ran"; sleep 600' }) })
      const ran = (): string => node.inside(`cat ${node.home}/ran 2>/dev/null; true`)
      await waitFor(() => ran() !== '')
      await node.stop()
      rmSync(join(node.home, '.cache'), { recursive: true })
      await node.start()
      enter(2)
      expect(await end).toMatchObject({ kind: 'lost', error: { retryable: false } })
      expect(ran()).toBe('x\n')
      cluster.dispose()
      await lab.close()
    })
  },
)
