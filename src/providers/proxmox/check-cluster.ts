import type { Check } from '../../ports.ts'
import { path } from '../../proxmox/encode.ts'
import { identityOf } from '../../proxmox/grant-hint.ts'
import type { Proxmox } from '../../proxmox/proxmox-client.ts'
import { auditGrantLines, grantLines } from '../../proxmox/pveum.ts'
import { listNodes, listStorages, type Template } from './cluster-guests.ts'
import { datacenterFirewall } from './firewall.ts'
import { bridgeOf } from './net-device.ts'
import { linksOf } from './placement.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'

/** Proxmox VE renews the certificate of a node two weeks before it ends, and then a pinned one is another. */
const SOON_MS = 14 * 86_400_000

/** Checks the certificate of the cluster: whether it is verified or pinned, and when it expires. */
export const checkCertificate = ({ proxmox }: ProxmoxProviderOptions): Check | undefined => {
  const seen = proxmox.certificate()
  if (seen === undefined) return undefined
  const { fingerprint, validTo } = seen
  const name = 'certificate'
  const pin = `PROXMOX_SSL_MODE=verify PROXMOX_SSL_FINGERPRINT=${fingerprint}`
  if (proxmox.settings.tls.mode === 'insecure')
    return {
      name,
      status: 'warning',
      message: `any certificate is taken; the one seen has the SHA-256 fingerprint ${fingerprint}`,
      fix: `Compare it with "pvenode cert info" on the node, then: ${pin}`,
    }
  const message = `SHA-256 fingerprint ${fingerprint}, valid until ${validTo.toISOString().slice(0, 10)}`
  if (validTo.getTime() - proxmox.clock.now() > SOON_MS) return { name, status: 'ok', message }
  const fix =
    proxmox.settings.tls.fingerprints.length > 0
      ? 'The node gets a new one soon: pin that one too (PROXMOX_SSL_FINGERPRINT takes several), or use PROXMOX_SSL_CA_CERT.'
      : 'Renew it. On the node: pvenode cert info'
  return { name, status: 'warning', message, fix }
}

/** Whether machines find their network on the template's node. */
export const checkBridge = async (
  { proxmox, network }: ProxmoxProviderOptions,
  { node, config }: Template,
  signal: AbortSignal,
): Promise<Check | undefined> => {
  const bridge = network.bridge ?? bridgeOf(config)
  if (bridge === undefined) return undefined
  const name = 'bridge'
  const rows = await proxmox.get<{ iface?: string }[]>(
    path`/nodes/${node}/network`,
    { type: 'any_bridge' },
    { signal },
  )
  const seen = rows.map(row => String(row.iface))
  if (seen.includes(bridge)) return { name, status: 'ok', message: `${bridge} is on ${node}` }
  return {
    name,
    // Without a right on any of them, none is shown: then the rights are what is wrong.
    status: seen.length === 0 ? 'warning' : 'failed',
    message: `${bridge} is not among the bridges of ${node} that the token sees: ${seen.join(', ') || 'none'}`,
    fix: `Set PROXMOX_BRIDGE to one of them, or let the token use it:\n${useLines(proxmox, bridge, network.zone)}`,
  }
}

/** Whether a clone is a matter of seconds. */
export const checkClones = async (
  { proxmox }: ProxmoxProviderOptions,
  template: Template,
  signal: AbortSignal,
): Promise<Check> => {
  const name = 'clones'
  const { linked, blocking } = linksOf(template, await listStorages(proxmox, template.node, signal))
  if (linked) return { name, status: 'ok', message: 'clones share the disks of the template' }
  const bytes = template.drives.reduce((sum, drive) => sum + drive.bytes, 0)
  return {
    name,
    status: 'warning',
    message: `every clone copies ${(bytes / 2 ** 30).toFixed(1)} GiB: storage ${blocking} cannot share disks`,
    fix: `Move the disks of the template to a storage that can (lvmthin, zfspool, rbd, or qcow2 files): qm disk move ${template.vmid} DISK STORAGE`,
  }
}

export const checkPool = async (
  { proxmox, pool }: ProxmoxProviderOptions,
  signal: AbortSignal,
): Promise<Check> => {
  const pools = await proxmox.get<{ poolid?: string }[]>('/pools', {}, { signal })
  if (pools.some(one => one.poolid === pool))
    return { name: 'pool', status: 'ok', message: `machines belong to pool ${pool}` }
  return {
    name: 'pool',
    status: 'failed',
    message: `there is no pool ${pool}, or the token may not see it`,
    fix: `pveum pool add ${pool}   # or set PROXMOX_POOL to the pool that the token has its rights on`,
  }
}

/** Rules on a VM do nothing while the firewall of the datacenter is off, and it is off by default. */
export const checkFirewall = async (
  { proxmox, network }: ProxmoxProviderOptions,
  signal: AbortSignal,
): Promise<Check> => {
  const name = 'firewall'
  if (!network.firewall)
    return {
      name,
      status: 'warning',
      message: 'machines are not filtered: jobs reach whatever their network reaches',
      fix: 'Set proxmox.firewall to true.',
    }
  const state = await datacenterFirewall(proxmox, signal)
  if (state === 'on') return { name, status: 'ok', message: 'the firewall of the datacenter is on' }
  if (state === 'off')
    return {
      name,
      status: 'warning',
      message: 'the firewall of the datacenter is off: jobs reach whatever their network reaches',
      fix: 'First allow your own way in (Datacenter, Firewall: ports 8006 and 22), then: pvesh set /cluster/firewall/options --enable 1',
    }
  return {
    name,
    status: 'warning',
    message:
      'it cannot be told whether the firewall of the datacenter is on, without which machines are not filtered',
    fix: `On a node: pvesh get /cluster/firewall/options. To let doctor see it:\n${watch(proxmox, '/')}`,
  }
}

/** Of use only where there is a choice. */
export const checkNodes = async (
  { proxmox }: ProxmoxProviderOptions,
  signal: AbortSignal,
): Promise<Check> => {
  const nodes = (await listNodes(proxmox, signal)).filter(node => node.online)
  const name = 'nodes'
  const count = nodes.length === 1 ? '1 node is' : `${nodes.length} nodes are`
  if (nodes.length < 2 || nodes.every(node => node.freeMemory !== undefined))
    return { name, status: 'ok', message: `${count} online` }
  return {
    name,
    status: 'warning',
    message: `${count} online, but the token may not see their load: machines are placed by the guests it sees`,
    fix: watch(proxmox, '/nodes'),
  }
}

const useLines = ({ settings }: Proxmox, bridge: string, zone = 'localnetwork'): string =>
  grantLines({
    ...identityOf(settings.credentials),
    role: 'DeputyNetwork',
    path: `/sdn/zones/${zone}/${bridge}`,
    privileges: ['SDN.Use'],
  }).join('\n')

const watch = ({ settings }: Proxmox, path: '/nodes' | '/'): string =>
  auditGrantLines(identityOf(settings.credentials), [path]).join('\n')
