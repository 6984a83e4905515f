import { AppError } from '../../jobs/errors.ts'
import type { GuestEntry, NodeEntry, StorageEntry, Template } from './inventory.ts'

export interface PlacementInput {
  readonly template: Template
  readonly nodes: readonly NodeEntry[]
  readonly guests: readonly GuestEntry[]
  /** Storages of the template's node. */
  readonly storages: readonly StorageEntry[]
  /** Bytes promised to machines that are being made, by node. */
  readonly promised: ReadonlyMap<string, number>
}

export interface Placement {
  readonly node: string
  readonly linked: boolean
}

/** Storages that keep a clone apart from its base only by copying everything. */
const NO_LINKS = ['lvm', 'iscsi', 'iscsidirect']

/** The node with the most room among those that can have a clone, and the kind of clone. */
export const place = ({ template, nodes, guests, storages, promised }: PlacementInput): Placement => {
  const used = storagesOf(template, storages)
  // A storage that the token may not see counts as local: the template's own node is always right.
  const everywhere = used.length > 0 && used.every(storage => storage?.shared === true)
  const candidates = nodes.filter(node => node.online && (everywhere || node.node === template.node))
  if (candidates.length === 0) {
    throw new AppError(
      'unavailable',
      `No node can have a clone of template ${template.vmid}: ${template.node} is offline.`,
      {
        hint: 'Start the node, or put the template on shared storage.',
      },
    )
  }
  const room = (node: NodeEntry): number => {
    const taken = guests
      .filter(guest => guest.node === node.node && guest.status === 'running')
      .reduce((sum, guest) => sum + guest.maxmem, 0)
    const base = node.freeMemory ?? -taken
    return base - (promised.get(node.node) ?? 0) - (node.load ?? 0) * 2 ** 30
  }
  const best = candidates.reduce((a, b) => (room(b) > room(a) ? b : a))
  return { node: best.node, linked: linksOf(template, storages).linked }
}

/** Whether clones share the disks of the template, and the storage that does not let them. */
export const linksOf = (
  template: Template,
  storages: readonly StorageEntry[],
): { linked: boolean; blocking?: string } => {
  const blocking = storagesOf(template, storages).find(
    one => one !== undefined && NO_LINKS.includes(one.type),
  )
  return blocking === undefined ? { linked: true } : { linked: false, blocking: blocking.storage }
}

/** Undefined for one that the token may not see. */
const storagesOf = (template: Template, storages: readonly StorageEntry[]) =>
  template.drives
    .filter(drive => drive.storage !== '')
    .map(drive => storages.find(one => one.storage === drive.storage))
