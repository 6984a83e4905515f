import type { Operation } from './api-operation.ts'

/** The guests that an operation affects, derived from its path and parameters. */
export interface AffectedGuests {
  /** Existing guests that the operation changes. */
  readonly touched: readonly number[]
  /** VMIDs that the operation allocates. */
  readonly created: readonly number[]
  /** Set if the operation affects every guest of a node or of the cluster. */
  readonly all?: 'cluster' | { readonly node: string }
}

export const affectedGuests = (operation: Operation): AffectedGuests => {
  const { segments, params } = operation
  const [root, node = '', kind = '', id = '', verb = ''] = segments
  if (root === 'nodes' && (kind === 'qemu' || kind === 'lxc')) {
    if (id === '') {
      const vmid = ids(params.vmid)
      return isTrue(params.force) ? { touched: vmid, created: vmid } : { touched: [], created: vmid }
    }
    if (isHarmless(operation)) return { touched: [], created: ids(params.newid) }
    return {
      touched: [...ids(id), ...ids(params['target-vmid'])],
      created: verb === 'clone' ? ids(params.newid) : [],
    }
  }
  if (root === 'nodes' && BULK.has(kind)) {
    const chosen = ids(params.vms)
    return chosen.length > 0 ? { touched: chosen, created: [] } : { touched: [], created: [], all: { node } }
  }
  if (root === 'nodes' && kind === 'status') return { touched: [], created: [], all: { node } }
  if (root === 'nodes' && kind === 'storage') return { touched: volumeOwners(operation), created: [] }
  if (root === 'cluster' && node === 'bulk-action') {
    const chosen = ids(params.vms)
    return chosen.length > 0 ? { touched: chosen, created: [] } : { touched: [], created: [], all: 'cluster' }
  }
  if (root === 'cluster' && node === 'ha')
    return { touched: ids([id, ...list(params.sid)].map(bare)), created: [] }
  if (root === 'cluster' && node === 'replication') {
    return { touched: ids([kind, ...list(params.id)].map(part => part.split('-')[0] ?? '')), created: [] }
  }
  if (root === 'pools') return { touched: ids(params.vms), created: [] }
  return { touched: [], created: [] }
}

const BULK = new Set(['startall', 'stopall', 'suspendall', 'migrateall'])

/** True if the operation leaves the guest unchanged: it reads, clones or snapshots. */
const isHarmless = ({ method, segments }: Operation): boolean => {
  const [, , , , verb, sub] = segments
  if (method === 'GET') return true
  if (method !== 'POST') return false
  return (
    verb === 'clone' || (verb === 'snapshot' && sub === undefined) || (verb === 'agent' && sub === 'ping')
  )
}

/** Reads the VMID from `vm-100-disk-0`, `base-100-…`, `subvol-100-…`, `vzdump-qemu-100-…`, `backup/vm/100/…`, `images/100/…` */
const volumeOwners = ({ segments, params }: Operation): number[] => {
  const volumes = [segments[5] ?? '', ...list(params.volume)]
  const owners = volumes.flatMap(volume => [
    ...[...volume.matchAll(/(?:^|[:/])(?:vm|base|basevol|subvol)-(\d{3,9})-/g)].map(match => match[1]!),
    ...[...volume.matchAll(/vzdump-(?:qemu|lxc)-(\d{3,9})-/g)].map(match => match[1]!),
    ...[...volume.matchAll(/(?:backup\/(?:vm|ct)|images|^\w+:|:)\/?(\d{3,9})\//g)].map(match => match[1]!),
  ])
  return ids([...owners, ...list(params.vmid)])
}

const list = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value]).filter(one => one !== undefined).map(String)
const bare = (sid: string) => sid.replace(/^(?:vm|ct):/, '')
const isTrue = (value: unknown) => ['1', 'true'].includes(String(value))

const ids = (value: unknown): number[] => {
  const numbers = list(value)
    .flatMap(text => text.split(/[,; ]+/))
    .filter(text => /^\d{3,9}$/.test(text))
    .map(Number)
  return [...new Set(numbers)]
}
