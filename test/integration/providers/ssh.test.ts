import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { createHarness } from '../../support/providers.ts'
import { createSshLab, missingForSshLab } from '../../support/sshlab.ts'
import { describeProviderContract } from './provider-contract.ts'

const missing = missingForSshLab()
const lab = missing ? undefined : await createSshLab({ nodes: 2 })
afterAll(() => lab?.close())

const nodes = lab?.nodes ?? []
const cluster = {
  nodes: nodes.map(({ id, address, port }) => ({
    id,
    host: address,
    port,
    user: lab?.user,
    identity: lab?.identity,
    max_tasks: 16,
  })),
  ssh: { configFile: 'none' },
}

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
}

const jobDirectories = (launched: { machine: { id: string }; job: { id: string } }): string[] =>
  nodes.map(node => join(node.home, '.cache/deputy/own/jobs', `${launched.machine.id}.${launched.job.id}`))

it.skipIf(lab?.mode !== 'namespaces')(
  'a node that is away when the daemon comes back shows no secret later',
  async () => {
    const [node] = nodes
    const options = { cluster, routed: true }
    const harness = await createHarness({
      ...{ module: 'providers/ssh/ssh-provider.js', factory: 'openSshProvider', options },
    })
    const task = 'echo go; while [ ! -e "$HOME/tell" ]; do sleep 0.05; done; echo "it is $TOKEN"'
    const launched = await harness.launch(
      { task, network: 'full', requires: { node: node!.id } },
      { secrets: { TOKEN: 'sesame-open-now' } },
    )
    await launched.sink.until(sink => sink.text().includes('go'), 'the command has started')
    launched.detach()
    await launched.outcome
    await harness.restart()
    node!.cut()
    const again = harness.reattach(launched, launched.sink.position)
    const { checks } = await harness.provider.check(AbortSignal.timeout(30_000))
    expect(checks.find(check => check.name.endsWith(node!.id))?.status).toBe('failed')
    node!.mend()
    writeFileSync(join(node!.home, 'tell'), '')
    expect(await again.outcome).toMatchObject({ kind: 'exit', exit: { code: 0 } })
    expect(again.sink.text()).toBe('it is [redacted]\n')
    await harness.dispose()
  },
)

for (const routed of [false, true]) {
  describeProviderContract(routed ? 'node' : 'ssh', {
    skip: missing,
    // sshd without root cannot give a terminal to the group tty, and then makes none.
    terminals: process.getuid?.() === 0,
    module: 'providers/ssh/ssh-provider.js',
    factory: 'openSshProvider',
    options: { cluster, graceSeconds: 1, routed },
    orderGap: 0.4,
    disks: nodes.map(node => node.home),
    hasEnded: (_, launched) =>
      jobDirectories(launched).some(directory => read(join(directory, 'exit')) !== ''),
    killHolders: (_, launched) => {
      for (const [index, directory] of jobDirectories(launched).entries()) {
        const holder = read(join(directory, 'supervisor')).split(' ')[0]
        const command = read(join(directory, 'command')).split(' ')[0]
        if (holder && command) nodes[index]!.inside(`kill -9 ${holder} -${command} ${command}; true`)
      }
    },
  })
}
