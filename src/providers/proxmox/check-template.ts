import type { Check } from '../../ports.ts'
import { identityOf } from '../../proxmox/grant-hint.ts'
import { SEED_PRIVILEGES } from '../../proxmox/privileges.ts'
import type { Proxmox } from '../../proxmox/proxmox-client.ts'
import { grantLines } from '../../proxmox/pveum.ts'
import { hasAgent, type Injection } from './choose-injection.ts'
import { listNodes, listStorages, type Template } from './cluster-guests.ts'
import { drivesOf } from './drives.ts'
import { bridgeOf } from './net-device.ts'
import { isEverywhere } from './placement.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'

/** Checks the template: guest agent, cloud-init drives, devices. */
export const checkTemplate = (
  provider: ProxmoxProviderOptions,
  template: Template,
  injection: Injection | undefined,
): Check[] => [
  agentCheck(template, provider.channel === 'agent' || injection === 'agent'),
  rivalCheck(template),
  ...deviceCheck(provider, template),
]

const agentCheck = ({ vmid, config }: Template, needed: boolean): Check =>
  hasAgent(config)
    ? { name: 'guest agent', status: 'ok', message: 'the template enables the guest agent' }
    : {
        name: 'guest agent',
        status: needed ? 'failed' : 'warning',
        message: `the template does not enable the guest agent${needed ? ', through which machines are reached' : ''}`,
        fix: `qm set ${vmid} --agent enabled=1   # and qemu-guest-agent inside`,
      }

const rivalCheck = ({ vmid, config }: Template): Check => {
  const name = 'cloud-init drive'
  const rivals = drivesOf(config).filter(drive => drive.kind === 'cloudinit')
  if (rivals.length === 0)
    return { name, status: 'ok', message: 'no drive of the template competes with the seed' }
  const keys = rivals.map(drive => drive.key).join(',')
  return {
    name,
    status: 'warning',
    message: `the template has a cloud-init drive (${keys}), which every clone makes and our seed replaces`,
    fix: `qm set ${vmid} --delete ${keys}`,
  }
}

const deviceCheck = ({ channel, network }: ProxmoxProviderOptions, { vmid, config }: Template): Check[] =>
  channel === 'agent' || network.bridge !== undefined || bridgeOf(config) !== undefined
    ? []
    : [
        {
          name: 'network',
          status: 'failed',
          message: 'the template has no network device, and machines must reach the callback address',
          fix: `qm set ${vmid} --net0 virtio,bridge=vmbr0,firewall=1`,
        },
      ]

/** On every node that may get machines: a local storage must be on each of them. */
export const checkSeed = async (
  { proxmox, seedStorage }: ProxmoxProviderOptions,
  template: Template,
  signal: AbortSignal,
): Promise<Check> => {
  const name = 'seed'
  const home = await listStorages(proxmox, template.node, signal)
  const seeds = home.find(one => one.storage === seedStorage)
  if (seeds === undefined)
    return {
      name,
      status: 'failed',
      message: `storage ${seedStorage} is not to be seen on ${template.node}: it is not there, is disabled, or the token may not see it`,
      fix: `On a node: pvesm status --storage ${seedStorage}. If it is there, let the token use it:\n${seedLines(proxmox, String(seedStorage))}`,
    }
  if (!seeds.content.includes('iso'))
    return {
      name,
      status: 'failed',
      message: `storage ${seeds.storage} takes no ISO images`,
      // The list is set as a whole: what the storage holds now must stay in it.
      fix: `pvesm set ${seeds.storage} --content ${[...seeds.content.filter(one => one !== ''), 'iso'].join(',')}`,
    }
  const offers = new Map([[template.node, { storages: home, bridges: undefined }]])
  const others = isEverywhere({ template, offers })
    ? (await listNodes(proxmox, signal)).filter(node => node.online && node.node !== template.node)
    : []
  const without: string[] = []
  for (const { node } of others) {
    const there = await listStorages(proxmox, node, signal).catch(() => [])
    if (!there.some(one => one.storage === seedStorage)) without.push(node)
  }
  if (without.length === 0)
    return { name, status: 'ok', message: `seed images go to storage ${seeds.storage}` }
  return {
    name,
    status: 'warning',
    message: `storage ${seeds.storage} is not on ${without.join(', ')}, which therefore get no machines`,
    fix: `pvesm set ${seeds.storage} --delete nodes   # the directory must exist on every node`,
  }
}

const seedLines = ({ settings }: Proxmox, storage: string): string =>
  grantLines({
    ...identityOf(settings.credentials),
    role: 'DeputySeeds',
    path: `/storage/${storage}`,
    privileges: SEED_PRIVILEGES,
  }).join('\n')
