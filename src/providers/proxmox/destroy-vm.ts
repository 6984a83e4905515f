import type { AppError } from '../../jobs/errors.ts'
import { operatorError } from '../../jobs/operator-error.ts'
import { path } from '../../proxmox/encode.ts'
import type { Proxmox } from '../../proxmox/proxmox-client.ts'
import { proxmoxDetails, UncertainError } from '../../proxmox/proxmox-errors.ts'
import { listGuests, poolOf, readConfig } from './cluster-guests.ts'
import { type Claim, ownership } from './identity.ts'

export type Target = Claim & { readonly machineId: string; readonly vmid: number }

/** How long to wait for a lock, or for a clone that is not visible yet. */
const LOCK_MS = 60_000
const HIDDEN_MS = 20_000
const RIGHTS_MS = 4000
const TASK_MS = 180_000

interface Obstacle {
  readonly error: unknown
  /** How long to wait for the obstacle to disappear by itself. */
  readonly patienceMs: number
}

/**
 * Destroys a VM that is ours and resolves when its id is free. A VM with the id that is not ours is left alone: ours is
 * gone already. The ownership is checked again before every attempt.
 */
export const destroyVm = async (proxmox: Proxmox, target: Target, signal: AbortSignal): Promise<void> => {
  const { clock } = proxmox
  const began = clock.now()
  for (let round = 0; ; round++) {
    if (await isGone(proxmox, target.vmid, signal)) return
    const guest = await look(proxmox, target, signal)
    if (guest.kind === 'foreign') return
    const obstacle = guest.kind === 'ours' ? await remove(proxmox, guest, signal) : guest
    if (obstacle === undefined && round === 0) continue
    const { error, patienceMs } = obstacle ?? { error: invisible(target), patienceMs: LOCK_MS }
    if (clock.now() - began >= patienceMs) throw error
    await clock.sleep(Math.min(2000, 100 * 2 ** round), signal)
  }
}

/** Stops a VM that is provably ours; throws if it cannot. */
export const stopVm = async (proxmox: Proxmox, target: Target, signal: AbortSignal): Promise<void> => {
  const guest = await look(proxmox, target, signal)
  if (guest.kind === 'ours') await stop(proxmox, guest, signal)
  else if (guest.kind === 'obstacle') throw guest.error
}

/** Whether another guest now has the id of this machine; then this machine is gone. */
export const isTaken = async (proxmox: Proxmox, target: Target, signal: AbortSignal): Promise<boolean> =>
  (await look(proxmox, target, signal)).kind === 'foreign'

/** Proxmox VE reports whether an id is in use even to a token that may not see the guest. */
export const isGone = async (proxmox: Proxmox, vmid: number, signal: AbortSignal): Promise<boolean> => {
  try {
    await proxmox.get('/cluster/nextid', { vmid }, { signal })
    return true
  } catch (error) {
    if (proxmoxDetails(error)?.kind === 'parameters') return false
    throw error
  }
}

interface Ours {
  readonly kind: 'ours'
  readonly node: string
  readonly vmid: number
  readonly isProtected: boolean
}

type Look = Ours | { readonly kind: 'foreign' } | ({ readonly kind: 'obstacle' } & Obstacle)

/** Tells whether the guest with this VMID is ours, foreign, or cannot be judged yet. */
const look = async (proxmox: Proxmox, target: Target, signal: AbortSignal): Promise<Look> => {
  const { vmid } = target
  const guest = (await listGuests(proxmox, signal)).find(one => one.vmid === vmid)
  const config = guest && (await readConfig(proxmox, guest, signal).catch(hidden))
  // In use but not visible: an incomplete clone, a VM that is being migrated, or a guest of another owner.
  if (!guest || !config) return { kind: 'obstacle', error: invisible(target), patienceMs: HIDDEN_MS }
  const pool = await poolOf(proxmox, guest, target.pool, signal)
  const whose = ownership({ vmid, pool, config }, target)
  const lock = config.lock === undefined ? undefined : String(config.lock)
  // A clone has its description when it is complete; until then it may be ours: wait.
  if (whose === 'foreign' && lock !== 'clone' && lock !== 'create') return { kind: 'foreign' }
  if (lock !== undefined)
    return { kind: 'obstacle', error: locked(target, guest.node, lock), patienceMs: LOCK_MS }
  if (whose === 'altered') return { kind: 'obstacle', error: altered(target), patienceMs: HIDDEN_MS }
  return { kind: 'ours', node: guest.node, vmid, isProtected: Number(config.protection ?? 0) === 1 }
}

const remove = async (proxmox: Proxmox, guest: Ours, signal: AbortSignal): Promise<Obstacle | undefined> => {
  const at = path`/nodes/${guest.node}/qemu/${guest.vmid}`
  try {
    await stop(proxmox, guest, signal)
    // Inherited from a template that is protected.
    if (guest.isProtected) await proxmox.put(`${at}/config`, { protection: false }, { signal })
    const gone = { purge: true, 'destroy-unreferenced-disks': true }
    await finish(proxmox, await proxmox.delete<string>(at, gone, { signal }), signal)
    return undefined
  } catch (error) {
    return passing(error)
  }
}

const stop = async (proxmox: Proxmox, { node, vmid }: Ours, signal: AbortSignal): Promise<void> => {
  const base = path`/nodes/${node}/qemu/${vmid}/status`
  const { status } = await proxmox.get<{ status: string }>(`${base}/current`, {}, { signal })
  if (status === 'running')
    await finish(proxmox, await proxmox.post<string>(`${base}/stop`, {}, { signal }), signal)
}

const finish = (proxmox: Proxmox, task: string, signal: AbortSignal): Promise<unknown> =>
  proxmox.waitTask(task, { signal, deadline: proxmox.clock.now() + TASK_MS })

/** Locks, lost answers, and guests that vanished, moved or started meanwhile; a missing right stays missing. */
const passing = (error: unknown): Obstacle => {
  const kind = proxmoxDetails(error)?.kind
  if (error instanceof UncertainError || ['missing', 'running', 'locked', 'stale_lock'].includes(kind ?? ''))
    return { error, patienceMs: LOCK_MS }
  if (kind === 'permission') return { error, patienceMs: RIGHTS_MS }
  throw error
}

const hidden = (error: unknown): undefined => {
  const kind = proxmoxDetails(error)?.kind
  if (kind === 'missing' || kind === 'permission') return undefined
  throw error
}

const invisible = ({ vmid }: Target): AppError =>
  operatorError(
    `VM ${vmid} exists, but the token may not see it.`,
    `If it is a clone that was never completed, root can remove it: qm unlock ${vmid} && qm destroy ${vmid}`,
  )

const locked = ({ vmid }: Target, node: string, lock: string): AppError =>
  operatorError(
    `VM ${vmid} is locked (${lock}) on ${node}, and no token can remove a lock.`,
    `If nothing works on it any more, on ${node}: qm unlock ${vmid}`,
  )

const altered = ({ vmid, machineId, pool }: Target): AppError =>
  operatorError(
    `VM ${vmid} was made for machine ${machineId}, but its name, description, tags or pool have been changed.`,
    `Destroy it by hand (qm destroy ${vmid}), or put it back into the pool ${pool} as it was.`,
  )
