import { loadConfig } from '../../config/load.ts'
import { templateSeed } from '../../guest/template-seed.ts'
import { buildTemplate, templateLines } from '../../proxmox/template.ts'
import { usage } from '../args/parse.ts'
import { defineCommand } from '../command.ts'
import type { Context } from '../context.ts'
import { INTERRUPTED } from '../exit-status.ts'
import { onInterrupt } from '../interrupt.ts'
import { approveCall } from '../proxmox/approve.ts'
import { applySetup, printSetup } from '../proxmox/setup.ts'
import { withCluster } from '../proxmox/with-cluster.ts'

export default defineCommand({
  name: 'proxmox',
  summary: 'Prepare a Proxmox VE cluster for jobs, approve calls of agents',
  usage: 'approve [ID] | setup | template [flags]',
  description:
    'approve shows a destructive call that an agent wants to make and asks you for it, on a terminal; without an id it lists the calls that wait. setup prints the lines that give a token exactly the rights that jobs need; with --apply it does so itself, as the administrator that PROXMOX_USER and PROXMOX_PASSWORD name. template tells how to make a template; with --image it makes one of a cloud image on a storage: it boots it once to install what it lacks of curl and qemu-guest-agent, which takes a storage for the seed and, for what is missing, a network. Ctrl-C removes what was made.',
  examples: [
    ['deputy proxmox approve', 'List the calls of agents that wait for your consent'],
    ['deputy proxmox setup --template 9000', 'Print what an administrator types on a node'],
    ['deputy proxmox setup --template 9000 --apply', 'Do it, and print the token'],
    [
      'deputy proxmox template --image local:import/debian.qcow2 --node pve1 --seeds local',
      'Make a template',
    ],
  ],
  flags: {
    apply: { type: 'boolean', summary: 'setup: do it instead of printing it' },
    user: { type: 'string', value: 'USER', summary: 'setup: user of the token (deputy@pve)' },
    token: { type: 'string', value: 'NAME', summary: 'setup: name of the token (deputy)' },
    template: { type: 'number', value: 'ID', summary: 'Id of the template (9000)' },
    disks: {
      type: 'string',
      value: 'STORAGES',
      summary: 'Storages of disks, with commas (those of the template, or local-lvm)',
    },
    seeds: { type: 'string', value: 'STORAGE', summary: 'Storage of seed images, best one of its own' },
    bridge: { type: 'string', value: 'BRIDGE', summary: 'Bridge or vnet of machines (vmbr0)' },
    zone: { type: 'string', value: 'ZONE', summary: 'setup: SDN zone of the vnet; a bridge has none' },
    image: { type: 'string', value: 'VOLUME', summary: 'template: disk image to make it of' },
    prepared: { type: 'boolean', summary: 'template: the image holds curl and qemu-guest-agent already' },
    node: { type: 'string', value: 'NODE', summary: 'template: node to make it on' },
    name: { type: 'string', value: 'NAME', summary: 'template: its name (agent-template)' },
  },
  words: ['approve', 'setup', 'template'],
  async run(context, { flags, args }) {
    if (args[0] === 'approve') return approveCall(context, args[1])
    const template = flags.template ?? 9000
    const { config } = loadConfig(context.home, context.env)
    const bridge = flags.bridge ?? config.proxmox.bridge ?? 'vmbr0'
    const zone = flags.zone ?? config.proxmox.zone
    const disks = flags.disks?.split(',').filter(name => name !== '')
    if (args[0] === 'setup') {
      const seedStorage = flags.seeds ?? config.proxmox.seedStorage
      const wish = {
        user: flags.user ?? 'deputy@pve',
        tokenName: flags.token ?? 'deputy',
        template,
        pool: config.proxmox.pool,
        bridge,
        ...(disks !== undefined && { diskStorages: disks }),
        ...(zone !== undefined && { zone }),
        ...(seedStorage !== undefined && { seedStorage }),
      }
      return flags.apply ? applySetup(context, wish) : printSetup(context, wish)
    }
    const storage = disks?.[0] ?? 'local-lvm'
    if (args[0] !== 'template')
      throw usage('No subcommand given: deputy proxmox approve | setup | template', 'proxmox')
    const name = flags.name ?? 'agent-template'
    if (flags.image === undefined) {
      return context.print(`${templateLines({ vmid: template, name, storage, bridge }).join('\n')}\n`)
    }
    const { image, node } = flags
    if (node === undefined) throw usage('On which node? --node NAME', 'proxmox')
    const seeds = flags.seeds ?? config.proxmox.seedStorage
    if (seeds === undefined && !flags.prepared)
      throw usage(
        'Where may the seed for the first boot go? --seeds STORAGE, or --prepared when the image holds curl and qemu-guest-agent',
        'proxmox',
      )
    const prepare =
      seeds === undefined || flags.prepared
        ? {}
        : { prepare: { storage: seeds, seed: templateSeed(`deputy-template-${template}`) } }
    return interruptible(context, signal =>
      withCluster(context, async proxmox => {
        await buildTemplate(proxmox, {
          node,
          vmid: template,
          name,
          image,
          storage,
          bridge,
          ...prepare,
          told: step => void context.err.write(`${step}\n`),
          signal,
        })
        return context.print(`template ${template} (${name}) is ready on ${node}\n`)
      }),
    )
  },
})

/** What is half made is removed at the first Ctrl-C, and left at the second. */
const interruptible = async (
  context: Context,
  work: (signal: AbortSignal) => Promise<number>,
): Promise<number> => {
  const stop = new AbortController()
  const begin = (): void => {
    void context.err.write('removing what was made; Ctrl-C again leaves it\n')
    stop.abort()
  }
  const interrupts = onInterrupt(begin, () => process.exit(INTERRUPTED))
  try {
    return await work(stop.signal)
  } catch (error) {
    if (error === stop.signal.reason) return INTERRUPTED
    throw error
  } finally {
    interrupts.dispose()
  }
}
