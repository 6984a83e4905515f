import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sshFailureOf } from '../../../src/nodes/ssh/ssh-errors.ts'
import { stopRun } from '../../../src/runner/client.ts'
import { channelTo, followOn, hostOf, labCluster, runOn } from '../../support/labcluster.ts'
import {
  createSshLab,
  missingForNamespaces,
  missingForSshLab,
  type SshLab,
  waitFor,
} from '../../support/sshlab.ts'
import { rejectedError as failureOf } from '../../support/thrown-error.ts'

const missing = missingForSshLab()
const noNamespaces = missing ?? missingForNamespaces()
let next = 0
const newId = (): string => `f${process.pid}-${next++}`
const why = (reason: string | undefined): string => (reason ? ` (skipped: ${reason})` : '')
const signal = new AbortController().signal

describe.skipIf(missing !== undefined)(`ssh to a node${why(missing)}`, () => {
  let lab: SshLab
  beforeAll(async () => {
    lab = await createSshLab({ nodes: 2, mode: 'loopback' })
  })
  afterAll(() => lab?.close())

  it('reports that nothing listens there', async () => {
    const cluster = labCluster(lab, {
      nodes: [{ id: 'off', host: '127.0.0.1', port: 1, user: lab.user, identity: lab.identity }],
    })
    const error = await failureOf(cluster.probe(cluster.find('off'), signal))
    expect(sshFailureOf(error)).toBe('unreachable')
    expect(error.retryable).toBe(true)
    expect(error.message).toContain('Node off')
    cluster.dispose()
  })

  it('reports that the login is refused, and never asks for a password', async () => {
    const stranger = `${lab.directory}/stranger`
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', stranger])
    const node = lab.nodes[0]!
    const cluster = labCluster(lab, {
      nodes: [{ id: 'n', host: node.address, port: node.port, user: lab.user, identity: stranger }],
    })
    const error = await failureOf(cluster.probe(cluster.find('n'), signal))
    expect(sshFailureOf(error)).toBe('auth-failed')
    expect(error.retryable).toBe(false)
    expect(error.hint).toContain('ssh-copy-id')
    cluster.dispose()
  })

  it('refuses a host key that changed, and says how to accept a new machine', async () => {
    const cluster = labCluster(lab)
    const node = lab.nodes[1]!
    await cluster.probe(cluster.find('n2'), signal)
    await node.newHostKey()
    cluster.ssh.reset('n2')
    const error = await failureOf(
      waitFor(async () => {
        await cluster.probe(cluster.find('n2'), signal)
        return false
      }),
    )
    expect(sshFailureOf(error)).toBe('host-key-changed')
    expect(error.hint).toContain('ssh-keygen -f')
    expect(error.retryable).toBe(false)
    const held = await runOn(cluster, 'n2', { id: newId(), command: 'true' })
    expect(held.end).toMatchObject({ kind: 'not-started' })
    cluster.dispose()
  })

  it('accepts no unknown host key with strict checking', async () => {
    const cluster = labCluster(lab, { ssh: { hostKeys: 'strict' } })
    const error = await failureOf(cluster.probe(cluster.find('n1'), signal))
    expect(sshFailureOf(error)).toBe('host-key-unknown')
    cluster.dispose()
  })

  it('goes through a jump host', async () => {
    const [bastion, inner] = lab.nodes as [SshLab['nodes'][number], SshLab['nodes'][number]]
    // ssh asks the jump host with the user's own configuration: give it one.
    mkdirSync(`${lab.directory}/conf`, { recursive: true })
    const config = `${lab.directory}/conf/config`
    writeFileSync(
      config,
      `Host *\n  IdentityFile ${lab.identity}\n  UserKnownHostsFile ${lab.directory}/conf/known\n  StrictHostKeyChecking accept-new\n`,
    )
    const cluster = labCluster(lab, {
      nodes: [
        {
          id: 'inner',
          host: inner.address,
          port: inner.port,
          user: lab.user,
          identity: lab.identity,
          jump: `${lab.user}@${bastion.address}:${bastion.port}`,
        },
      ],
      ssh: { configFile: config },
    })
    const held = await runOn(cluster, 'inner', { id: newId(), command: 'echo through' })
    expect(held).toMatchObject({ end: { kind: 'exit', code: 0 }, stdout: 'through\n' })
    cluster.dispose()
  })

  it('follows an alias of ssh_config', async () => {
    const node = lab.nodes[0]!
    const config = `${lab.directory}/alias_config`
    writeFileSync(
      config,
      `Host my-alias\n  HostName ${node.address}\n  Port ${node.port}\n  User ${lab.user}\n  IdentityFile ${lab.identity}\n`,
    )
    const cluster = labCluster(lab, { nodes: [{ id: 'a', host: 'my-alias' }], ssh: { configFile: config } })
    expect(await cluster.target(cluster.find('a'), signal)).toEqual({ id: 'a', host: 'my-alias' })
    const held = await runOn(cluster, 'a', { id: newId(), command: 'echo found' })
    expect(held.stdout).toBe('found\n')
    cluster.dispose()
  })

  it('forwards no ssh agent, even if ssh_config says so', async () => {
    const socket = `${lab.directory}/agent`
    const agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' })
    await waitFor(() => existsSync(socket))
    const config = `${lab.directory}/agent_config`
    writeFileSync(config, 'Host *\n  ForwardAgent yes\n  ControlMaster auto\n')
    const env = { ...process.env, SSH_AUTH_SOCK: socket }
    const cluster = labCluster(lab, { ssh: { configFile: config } }, { env })
    const command = 'echo "[$SSH_AUTH_SOCK]"'
    const held = await runOn(cluster, 'n1', { id: newId(), command })
    expect(held.stdout).toBe('[]\n')
    // Over a connection that is open already, too.
    expect((await runOn(cluster, 'n1', { id: newId(), command })).stdout).toBe('[]\n')
    cluster.dispose()
    agent.kill()
  })

  it('survives a login shell that talks', async () => {
    const node = lab.nodes[0]!
    writeFileSync(`${node.home}/.bashrc`, 'echo "Welcome! x 0 exit 0 0"; echo noise >&2\n')
    const cluster = labCluster(lab)
    const held = await runOn(cluster, 'n1', { id: newId(), command: 'echo out' })
    expect(held).toMatchObject({ end: { kind: 'exit', code: 0 }, stdout: 'out\n', stderr: '' })
    const { report } = await cluster.probe(cluster.find('n1'), signal)
    expect(report.cores).toBeGreaterThan(0)
    rmSync(`${node.home}/.bashrc`)
    cluster.dispose()
  })

  it('finds the command again after the daemon was killed', async () => {
    const first = labCluster(lab)
    const id = newId()
    const gone = new AbortController()
    let heard = ''
    const running = runOn(
      first,
      'n1',
      { id, command: 'echo one; while [ ! -e "$HOME/go" ]; do sleep 0.05; done; echo two; exit 4' },
      { signal: gone.signal, onOutput: text => (heard += text) },
    ).catch(() => undefined)
    await waitFor(() => heard.includes('one'))
    gone.abort()
    first.dispose()
    await running
    lab.nodes[0]!.inside(`touch ${lab.nodes[0]!.home}/go`)
    const second = labCluster(lab)
    let rest = ''
    const end = await followOn(hostOf(second, 'n1'), id, {
      from: heard.length,
      onOutput: (_, data) => {
        rest += String(data)
      },
    })
    expect(heard + rest).toBe('one\ntwo\n')
    expect(end).toMatchObject({ kind: 'exit', code: 4 })
    second.dispose()
  })

  it('runs many commands at once over few connections', async () => {
    const cluster = labCluster(lab, {
      nodes: [
        {
          id: 'n1',
          host: lab.nodes[0]!.address,
          port: lab.nodes[0]!.port,
          user: lab.user,
          identity: lab.identity,
        },
      ],
    })
    const all = await Promise.all(
      Array.from({ length: 60 }, (_, i) => runOn(cluster, 'n1', { id: newId(), command: `echo ${i}` })),
    )
    expect(all.map(({ stdout }) => stdout.trim())).toEqual(Array.from({ length: 60 }, (_, i) => String(i)))
    cluster.dispose()
  })
})

describe.skipIf(noNamespaces !== undefined)(`a node with a network of its own${why(noNamespaces)}`, () => {
  let lab: SshLab
  beforeAll(async () => {
    lab = await createSshLab({ nodes: 3, mode: 'namespaces' })
  })
  afterAll(() => lab?.close())

  it('keeps a command through a cut connection: nothing is lost, doubled or started again', async () => {
    const cluster = labCluster(lab)
    const node = lab.nodes[0]!
    const command =
      'echo start >> "$HOME/starts"; for i in $(seq 1 60); do echo "line $i"; sleep 0.1; done; exit 5'
    let seen = ''
    const running = runOn(cluster, 'n1', { id: newId(), command }, { onOutput: text => (seen += text) })
    await waitFor(() => seen.includes('line 5\n'))
    node.cut()
    // Nothing comes through; the clock of the node goes on.
    const before = seen.length
    await waitFor(() => Number(node.inside(`cat ${node.home}/.cache/deputy/test/jobs/*/out.* | wc -l`)) > 40)
    expect(seen.length).toBeLessThan(before + 200)
    node.mend()
    const held = await running
    expect(held.end).toMatchObject({ kind: 'exit', code: 5 })
    expect(held.stdout).toBe(Array.from({ length: 60 }, (_, i) => `line ${i + 1}\n`).join(''))
    expect(node.inside(`wc -l < ${node.home}/starts`).trim()).toBe('1')
    cluster.dispose()
  })

  it('cancels a command that was started over a connection which broke', async () => {
    const cluster = labCluster(lab)
    const node = lab.nodes[1]!
    const id = newId()
    let up = false
    const running = runOn(
      cluster,
      'n2',
      { id, command: 'echo up; sleep 400' },
      {
        onOutput: () => {
          up = true
        },
      },
    )
    await waitFor(() => up)
    node.cut()
    cluster.ssh.reset('n2')
    node.mend()
    await waitFor(async () => {
      const channel = await channelTo(cluster, 'n2')
      const left = await stopRun(channel, { run: id, signal, graceSeconds: 0.2 }).catch(() => undefined)
      return left?.length === 0
    })
    expect((await running).end).toMatchObject({ kind: 'exit', how: 'stop' })
    expect(node.inside('cat /proc/[0-9]*/cmdline | tr "\\0" " "')).not.toContain('sleep 400')
    cluster.dispose()
  })

  it('says that a command is lost when the node was restarted, and never starts it again', async () => {
    const cluster = labCluster(lab)
    const node = lab.nodes[2]!
    let up = false
    const running = runOn(
      cluster,
      'n3',
      { id: newId(), command: 'echo once >> "$HOME/once"; echo up; sleep 400' },
      {
        onOutput: () => {
          up = true
        },
      },
    )
    await waitFor(() => up)
    await node.reboot()
    const { end } = await running
    expect(end).toMatchObject({ kind: 'lost' })
    expect(end.kind === 'lost' && end.error.message).toContain('reboot')
    expect(node.inside(`wc -l < ${node.home}/once`).trim()).toBe('1')
    cluster.dispose()
  })

  it('certainly did not start a command it could not be reached for', async () => {
    const cluster = labCluster(lab, { ssh: { connectTimeout: 1, retries: 1 } })
    lab.nodes[0]!.cut()
    const { end } = await runOn(cluster, 'n1', { id: newId(), command: 'true' })
    lab.nodes[0]!.mend()
    expect(end.kind).toBe('not-started')
    cluster.dispose()
  })

  it('certainly did not start a command that its connection was dead for before a session was open', async () => {
    const cluster = labCluster(lab, { ssh: { connectTimeout: 1, retries: 0 } })
    await cluster.probe(cluster.find('n3'), signal)
    lab.nodes[2]!.cut()
    const { end } = await runOn(cluster, 'n3', { id: newId(), command: 'true' })
    lab.nodes[2]!.mend()
    expect(end).toMatchObject({ kind: 'not-started' })
    cluster.dispose()
  })

  it('does not hold up the status of the others when it is gone', async () => {
    const cluster = labCluster(lab, { timeouts: { status: 2 }, ssh: { connectTimeout: 1 } })
    await cluster.status()
    lab.nodes[1]!.cut()
    const started = performance.now()
    const all = await cluster.status({ force: true })
    expect(performance.now() - started).toBeLessThan(20_000)
    lab.nodes[1]!.mend()
    expect(all.map(status => status.health === 'unreachable')).toEqual([false, true, false])
    expect(all[1]?.reason).toContain('n2')
    expect(all[0]?.report).toMatchObject({ os: 'linux' })
    cluster.dispose()
  })

  it('is not chosen while it is gone, and is chosen again when it is back', async () => {
    const cluster = labCluster(lab, { timeouts: { status: 2 }, ssh: { connectTimeout: 1, retries: 0 } })
    lab.nodes[0]!.cut()
    await cluster.status({ force: true })
    const chosen = await Promise.all(Array.from({ length: 4 }, () => cluster.choose({}, signal)))
    expect(chosen.map(choice => choice.id)).not.toContain('n1')
    for (const choice of chosen) choice.release()
    lab.nodes[0]!.mend()
    await waitFor(async () => (await cluster.status({ force: true }))[0]?.health !== 'unreachable')
    const back = await cluster.choose({ node: 'n1' }, signal)
    expect(back.id).toBe('n1')
    cluster.dispose()
  })

  it('takes no more commands than its limit, and then reports that', async () => {
    const nodes = lab.nodes.map(({ id, address, port }) => ({
      id,
      host: address,
      port,
      user: lab.user,
      identity: lab.identity,
      max_tasks: 2,
    }))
    const cluster = labCluster(lab, { nodes, thresholds: { cpu: 100, memory: 100, load: 1000 } })
    await cluster.status()
    const chosen = await Promise.all(Array.from({ length: 6 }, () => cluster.choose({}, signal)))
    expect(chosen.map(({ id }) => id).sort()).toEqual(['n1', 'n1', 'n2', 'n2', 'n3', 'n3'])
    const error = await failureOf(cluster.choose({}, signal))
    expect(error.message).toContain('n1 runs 2 of 2 tasks')
    chosen[0]!.release()
    expect((await cluster.choose({}, signal)).id).toBe(chosen[0]!.id)
    cluster.dispose()
  })

  it('reports a full disk', async () => {
    const node = lab.nodes[2]!
    const cluster = labCluster(lab)
    node.inside(
      `mkdir -p ${node.home}/.cache/deputy && mount -t tmpfs -o size=64k,nr_inodes=40 tmpfs ${node.home}/.cache/deputy && head -c 200000 /dev/zero > ${node.home}/.cache/deputy/fill; true`,
    )
    const { end } = await runOn(cluster, 'n3', { id: newId(), command: 'true' })
    expect(end.kind).toBe('not-started')
    expect(end.kind === 'not-started' && end.error.message).toContain('disk full')
    // Lazily: what held the command may still be closing its files.
    node.inside(`umount -l ${node.home}/.cache/deputy`)
    cluster.dispose()
  })

  it('keeps the exit status of a command that filled the disk', async () => {
    const node = lab.nodes[2]!
    const cluster = labCluster(lab)
    node.inside(
      `mkdir -p ${node.home}/.cache/deputy && mount -t tmpfs -o size=256k tmpfs ${node.home}/.cache/deputy`,
    )
    const { end } = await runOn(cluster, 'n3', {
      id: newId(),
      command: 'head -c 9000000 /dev/zero > big; exit 9',
    })
    expect(end).toMatchObject({ kind: 'exit', code: 9 })
    // Lazily: what held the command may still be closing its files.
    node.inside(`umount -l ${node.home}/.cache/deputy`)
    cluster.dispose()
  })
})
