import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSshLab, type LabNode, missingForSshLab, type SshLab } from '../../support/sshlab.ts'
import { freezeOne } from '../faults.ts'
import { processes } from '../processes.ts'
import type { Provider } from './provider.ts'

const SLOTS = 6

/** Two nodes: one whose sshd dies while its commands live on, and one that is cut off or dies as a whole. */
export const ssh: Provider = {
  name: 'ssh',
  missing: missingForSshLab,
  open: async ({ damage }) => {
    const mortal = await createSshLab({ nodes: 1, mode: 'loopback' })
    const remote = await createSshLab({ nodes: 1, mode: 'namespaces' })
    const labs = [mortal, remote]
    const nodes = labs.map((lab, index) => ({ lab, node: lab.nodes[0]!, id: `n${index + 1}` }))
    const [near, far] = [mortal.nodes[0]!, remote.nodes[0]!]
    return {
      config: {
        cluster: {
          nodes: nodes.map(({ lab, node, id }) => entryOf(lab, node, id)),
          ssh: { configFile: 'none' },
        },
      },
      place: random => ({ runtime: 'ssh', network: random.pick(['full', 'none']) }),
      faults: [
        {
          name: 'sshd-kill',
          target: 'near',
          weight: 3,
          strike: async random => {
            await near.stop()
            await sleep(random.between(0, 3000))
            await near.start()
            return near.id
          },
        },
        { name: 'sshd-freeze', weight: 2, strike: random => freezeOne(sshds(), random) },
        {
          name: 'node-cut',
          target: 'far',
          weight: 2,
          strike: async random => {
            far.cut()
            await sleep(random.between(200, 6000))
            far.mend()
            return far.id
          },
        },
        {
          name: 'node-reboot',
          target: 'far',
          weight: 1,
          strike: async random => {
            const over = damage.begin('ssh', SLOTS)
            await far.stop()
            await sleep(random.between(0, 2000))
            await far.start()
            setTimeout(over, 10_000).unref()
            return far.id
          },
        },
      ],
      pids: () => processes().flatMap(one => (/\bsshd\b/.test(one.command) ? [one.pid] : [])),
      leftovers: async () => nodes.flatMap(({ node, id }) => leftOn(node).map(path => `${path} on ${id}`)),
      close: async () => {
        for (const lab of labs) await lab.close()
      },
    }
  },
}

const entryOf = (lab: SshLab, node: LabNode, id: string) => ({
  id,
  host: node.address,
  port: node.port,
  user: lab.user,
  identity: lab.identity,
  max_tasks: SLOTS,
})

const sshds = () => processes().filter(({ command }) => /\bsshd\b/.test(command))

/**
 * Records and workspaces of commands. An empty record with the file `never` stays for a day: it tells a request that
 * is still on its way that it comes too late. Names with a dot are records that wait for a command.
 */
const leftOn = (node: LabNode): string[] => {
  const base = join(node.home, '.cache/deputy')
  return list(base).flatMap(owner =>
    ['jobs', 'work'].flatMap(kind =>
      list(join(base, owner, kind))
        .filter(name => !name.startsWith('.') && !list(join(base, owner, kind, name)).includes('never'))
        .map(name => `${kind}/${name}`),
    ),
  )
}

const list = (directory: string): string[] => {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}
