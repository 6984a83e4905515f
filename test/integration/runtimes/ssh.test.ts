import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { createSshLab, missingForSshLab } from '../../support/sshlab.ts'
import { describeRuntimeContract } from './contract.ts'

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

for (const routed of [false, true]) {
  describeRuntimeContract(routed ? 'node' : 'ssh', {
    skip: missing,
    module: 'runtimes/ssh/index.js',
    factory: 'openSshRuntime',
    options: { cluster, graceSeconds: 1, routed },
    orderGap: 0.4,
    hasEnded: (_, launched) =>
      jobDirectories(launched).some(directory => read(join(directory, 'exit')) !== ''),
    killHolders: (_, launched) => {
      for (const [index, directory] of jobDirectories(launched).entries()) {
        const holder = read(join(directory, 'super')).split(' ')[0]
        const command = read(join(directory, 'cpid'))
        if (holder && command) nodes[index]!.inside(`kill -9 ${holder} -${command} ${command}; true`)
      }
    },
  })
}
