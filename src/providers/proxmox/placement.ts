import { AppError } from '../../jobs/errors.ts'
import { formatSize } from '../../jobs/sizes.ts'
import type { GuestEntry, NodeEntry, NodeOffer, StorageEntry, Template } from './cluster-guests.ts'

export interface PlacementInput {
  readonly template: Template
  readonly nodes: readonly NodeEntry[]
  readonly guests: readonly GuestEntry[]
  /** What nodes offer; nodes that did not answer are absent. */
  readonly offers: ReadonlyMap<string, NodeOffer>
  /** Bytes promised to machines that are being made, by node. */
  readonly promised: ReadonlyMap<string, number>
  /** Bytes of the machine. */
  readonly memory: number
  readonly seedStorage?: string | undefined
  readonly bridge?: string | undefined
}

export interface Placement {
  readonly node: string
  readonly linked: boolean
}

/** Storage types without linked clones. */
const NO_LINKS = ['lvm', 'iscsi', 'iscsidirect']

/** Chooses the node with the most room among those that can have a clone, and the kind of clone. */
export const place = (input: PlacementInput): Placement => {
  const { template, nodes, offers } = input
  const near = nodes.filter(node => node.online && (isEverywhere(input) || node.node === template.node))
  if (near.length === 0) throw offline(template)
  const able = near.filter(node => lacks(input, node.node).length === 0)
  if (able.length === 0)
    throw unfit(
      template,
      near.map(({ node }) => `${node} lacks ${lacks(input, node).join(', ')}`),
    )
  const roomy = able.filter(node => (freeMemory(input, node) ?? Number.POSITIVE_INFINITY) >= input.memory)
  if (roomy.length === 0) throw full(input.memory, able)
  const best = roomy.reduce((a, b) => (room(input, b) > room(input, a) ? b : a))
  return { node: best.node, linked: linksOf(template, offers.get(template.node)?.storages ?? []).linked }
}

/** Tells whether clones can share the template's disks. If not, `blocking` is the storage without linked clones. */
export const linksOf = (
  template: Template,
  storages: readonly StorageEntry[],
): { linked: boolean; blocking?: string } => {
  const blocking = template.drives
    .filter(drive => drive.kind === 'disk')
    .map(drive => storages.find(one => one.storage === drive.storage))
    .find(storage => storage !== undefined && NO_LINKS.includes(storage.type))
  return blocking === undefined ? { linked: true } : { linked: false, blocking: blocking.storage }
}

/**
 * Proxmox VE clones to another node only when all drives are on shared storages, images in CD-ROM drives included.
 * A storage that the token may not see counts as local: the template's own node is always right.
 */
export const isEverywhere = ({ template, offers }: Pick<PlacementInput, 'template' | 'offers'>): boolean => {
  const home = offers.get(template.node)?.storages ?? []
  const used = storagesOf(template)
  return used.length > 0 && used.every(id => home.find(one => one.storage === id)?.shared === true)
}

const storagesOf = ({ drives }: Template): string[] => [
  ...new Set(drives.map(drive => drive.storage).filter(storage => storage !== '')),
]

/** Lists the storages and bridges that a node lacks and another node has. Proxmox VE reports those that no node has. */
const lacks = ({ template, offers, seedStorage, bridge }: PlacementInput, node: string): string[] => {
  const offer = offers.get(node)
  if (offer === undefined) return ['an answer']
  const has = (id: string, where: NodeOffer, content?: string) =>
    where.storages.some(
      one => one.storage === id && one.active && (content === undefined || one.content.includes(content)),
    )
  const somewhere = (test: (where: NodeOffer) => boolean) => [...offers.values()].some(test)
  return [
    ...storagesOf(template)
      .filter(id => !has(id, offer) && somewhere(one => has(id, one)))
      .map(id => `storage ${id}`),
    ...(seedStorage !== undefined &&
    !has(seedStorage, offer, 'iso') &&
    somewhere(one => has(seedStorage, one, 'iso'))
      ? [`storage ${seedStorage}`]
      : []),
    ...(bridge !== undefined &&
    offer.bridges?.has(bridge) === false &&
    somewhere(one => one.bridges?.has(bridge) === true)
      ? [`bridge ${bridge}`]
      : []),
  ]
}

const freeMemory = ({ promised }: PlacementInput, node: NodeEntry): number | undefined =>
  node.freeMemory === undefined ? undefined : node.freeMemory - (promised.get(node.node) ?? 0)

/** Estimates the load from the visible guests, if the token may not see the load of nodes. */
const room = (input: PlacementInput, node: NodeEntry): number => {
  const taken = input.guests
    .filter(guest => guest.node === node.node && guest.status === 'running')
    .reduce((sum, guest) => sum + guest.maxmem, input.promised.get(node.node) ?? 0)
  return (freeMemory(input, node) ?? -taken) - (node.load ?? 0) * 2 ** 30
}

const offline = (template: Template) =>
  new AppError(
    'unavailable',
    `No node can have a clone of template ${template.vmid}: ${template.node} is offline.`,
    { hint: 'Start the node, or put the template on shared storage.' },
  )

const unfit = (template: Template, reasons: readonly string[]) =>
  new AppError(
    'unavailable',
    `No node can have a clone of template ${template.vmid}: ${reasons.join('; ')}.`,
    {
      hint: 'Make the storages and the bridge available on a node that has the template: deputy doctor',
    },
  )

/** A separate error kind: it is resolved when another machine ends. */
export class NoRoomError extends AppError {}

const full = (memory: number, able: readonly NodeEntry[]) =>
  new NoRoomError(
    'unavailable',
    `No node has ${formatSize(memory)} of memory free: ${able.map(node => `${node.node} has ${formatSize(Math.max(0, node.freeMemory ?? 0))}`).join(', ')}.`,
    {
      hint: 'Ask for less memory, run fewer jobs at once, or end other guests.',
      retryable: true,
    },
  )
