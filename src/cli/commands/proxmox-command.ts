import { loadConfig } from '../../config/load.ts'
import { templateSeed } from '../../guest/template-seed.ts'
import { buildTemplate, templateLines } from '../../proxmox/build-template.ts'
import { unknownSubcommand, usage } from '../args/parse.ts'
import { defineCommand } from '../command.ts'
import type { Context } from '../context.ts'
import { INTERRUPTED } from '../exit-status.ts'
import { onInterrupt } from '../interrupt.ts'
import { approveCall } from '../proxmox/approve.ts'
import { applySetup, printSetup } from '../proxmox/setup.ts'
import { trustCertificate } from '../proxmox/trust.ts'
import { withCluster } from '../proxmox/with-cluster.ts'

const VERBS = ['approve', 'trust', 'setup', 'template']

export default defineCommand({
  usage: 'approve [ID] | trust HOST | setup | template [flags]',
  description:
    'approve shows a destructive call that an agent requests and asks you to confirm it; without an id it lists the pending calls. trust shows the certificate of a host and pins it when you agree. setup prints the commands that create a token with the rights jobs need; with --apply it runs them as the administrator in PROXMOX_USER and PROXMOX_PASSWORD. template prints how to make a template; with --image it makes one from a cloud image: it boots the image once and installs curl and qemu-guest-agent if they are missing, which needs a seed storage and a network. Ctrl-C removes the unfinished VM.',
  examples: [
    ['deputy proxmox approve', 'List the pending calls of agents'],
    ['deputy proxmox trust pve1.lan', 'Trust the self-signed certificate of a host'],
    ['deputy proxmox setup --template 9000', 'Print what an administrator types on a node'],
    ['deputy proxmox setup --template 9000 --apply', 'Do it, and print the token'],
    ['deputy proxmox template --image local:import/vm.qcow2 --node pve --seeds local', 'Make a template'],
  ],
  flags: {
    fingerprint: {
      type: 'string',
      value: 'SHA256',
      summary: 'trust: pin it without a question if it is this one',
    },
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
  words: VERBS,
  async run(context, { flags, args }) {
    if (args[0] === 'approve') return approveCall(context, args[1])
    if (args[0] === 'trust') {
      if (args[1] === undefined) throw usage('No host given. Usage: deputy proxmox trust HOST', 'proxmox')
      return trustCertificate(context, args[1], flags.fingerprint)
    }
    const template = flags.template ?? 9000
    const { config } = loadConfig(context.home, context.env)
    const bridge = flags.bridge ?? config.proxmox.bridge ?? 'vmbr0'
    const zone = flags.zone ?? config.proxmox.zone
    const disks = flags.disks?.split(',').filter(name => name !== '')
    if (args[0] === 'setup') {
      const seedStorage = flags.seeds ?? config.proxmox.seedStorage
      const request = {
        user: flags.user ?? 'deputy@pve',
        tokenName: flags.token ?? 'deputy',
        template,
        pool: config.proxmox.pool,
        bridge,
        ...(disks !== undefined && { diskStorages: disks }),
        ...(zone !== undefined && { zone }),
        ...(seedStorage !== undefined && { seedStorage }),
      }
      return flags.apply ? applySetup(context, request) : printSetup(context, request)
    }
    const storage = disks?.[0] ?? 'local-lvm'
    if (args[0] !== 'template') throw unknownSubcommand('proxmox', args[0], VERBS)
    const name = flags.name ?? 'agent-template'
    if (flags.image === undefined) {
      return context.print(`${templateLines({ vmid: template, name, storage, bridge }).join('\n')}\n`)
    }
    const { image, node } = flags
    if (node === undefined) throw usage('No node given. Pass --node NAME.', 'proxmox')
    const seeds = flags.seeds ?? config.proxmox.seedStorage
    if (seeds === undefined && !flags.prepared)
      throw usage(
        'No storage given for the seed of the first boot. Pass --seeds STORAGE, or --prepared if the image has curl and qemu-guest-agent.',
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
          onStep: step => void context.err.write(`${step}\n`),
          signal,
        })
        return context.print(`template ${template} (${name}) is ready on ${node}\n`)
      }),
    )
  },
})

/** The first Ctrl-C removes the unfinished VM; the second keeps it. */
const interruptible = async (
  context: Context,
  work: (signal: AbortSignal) => Promise<number>,
): Promise<number> => {
  const stop = new AbortController()
  const begin = (): void => {
    void context.err.write('removing the unfinished VM; press Ctrl-C again to keep it\n')
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
