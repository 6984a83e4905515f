import type { AppError } from '../../jobs/errors.ts'
import { forOperator } from '../../jobs/for-operator.ts'
import type { Proxmox } from '../../proxmox/client.ts'
import { path } from '../../proxmox/encode.ts'
import { proxmoxDetails, UncertainError } from '../../proxmox/errors.ts'
import { isOurs, type Ownership } from './identity.ts'
import { listGuests, readConfig } from './inventory.ts'

export interface Target extends Ownership {
  readonly machineId: string
  readonly vmid: number
}

const LOCK_MS = 60_000
const ROUNDS = 20
const TASK_MS = 180_000

/**
 * Destroys a VM that is ours and resolves when its id is free. A VM that has the id but is not ours is left
 * alone: then ours is gone already.
 */
export const destroyVm = async (proxmox: Proxmox, target: Target, signal: AbortSignal): Promise<void> => {
  for (let round = 0; ; round++) {
    if (await isGone(proxmox, target.vmid, signal)) return
    const guest = (await listGuests(proxmox, signal)).find(one => one.vmid === target.vmid)
    const config = guest && (await readConfig(proxmox, guest, signal).catch(missing))
    if (guest && config) {
      if (isOurs({ ...guest, config }, target))
        await remove(proxmox, { node: guest.node, vmid: target.vmid }, signal).catch(error =>
          lookAgain(error, round, target),
        )
      else if (!isUnwritten(config)) return
      else if (round >= ROUNDS) throw invisible(target)
      else await proxmox.clock.sleep(1000, signal)
    } else if (round >= ROUNDS) throw invisible(target)
    // Not to be seen but there: a clone that is not complete, or somebody else's.
    else await proxmox.clock.sleep(1000, signal)
  }
}

/** Lost answers, and guests that vanished or started meanwhile; a right that is missing is still missing later. */
const lookAgain = (error: unknown, round: number, { vmid }: Target): void => {
  const kind = proxmoxDetails(error)?.kind
  const passing = error instanceof UncertainError || kind === 'missing' || kind === 'running'
  if (passing && round < ROUNDS) return
  if (kind === 'permission' && round < 2) return
  if (kind === 'stale_lock')
    throw forOperator(
      `VM ${vmid} is locked, and no token can remove the lock: ${(error as Error).message}`,
      `As root on its node, when nothing works on it any more: qm unlock ${vmid}. Then: deputy machines rm`,
    )
  throw error
}

/** A clone in its first moment is a lock and nothing else: whose it is cannot be told yet. */
const isUnwritten = (config: Readonly<Record<string, unknown>>): boolean =>
  config.lock !== undefined && config.description === undefined && config.name === undefined

/** Proxmox VE tells whether an id is in use even to those who may not see by whom. */
export const isGone = async (proxmox: Proxmox, vmid: number, signal: AbortSignal): Promise<boolean> => {
  try {
    await proxmox.get('/cluster/nextid', { vmid }, { signal })
    return true
  } catch (error) {
    if (proxmoxDetails(error)?.kind === 'parameters') return false
    throw error
  }
}

export const stopVm = async (
  proxmox: Proxmox,
  at: { node: string; vmid: number },
  signal: AbortSignal,
): Promise<void> => {
  const base = path`/nodes/${at.node}/qemu/${at.vmid}`
  const { status } = await proxmox.get<{ status: string }>(`${base}/status/current`, {}, { signal })
  if (status !== 'running') return
  await perform(proxmox, () => proxmox.post<string>(`${base}/status/stop`, {}, { signal }), signal)
}

const remove = async (
  proxmox: Proxmox,
  at: { node: string; vmid: number },
  signal: AbortSignal,
): Promise<void> => {
  const destroy = () =>
    proxmox.delete<string>(
      path`/nodes/${at.node}/qemu/${at.vmid}`,
      { purge: true, 'destroy-unreferenced-disks': true },
      { signal },
    )
  await stopVm(proxmox, at, signal)
  await perform(proxmox, destroy, signal)
}

const perform = (proxmox: Proxmox, begin: () => Promise<string>, signal: AbortSignal): Promise<unknown> => {
  const run = async () => proxmox.waitTask(await begin(), { signal, deadline: proxmox.clock.now() + TASK_MS })
  return proxmox.whileLocked(run, { deadline: proxmox.clock.now() + LOCK_MS, signal })
}

const missing = (error: unknown): undefined => {
  const kind = proxmoxDetails(error)?.kind
  if (kind === 'missing' || kind === 'permission') return undefined
  throw error
}

const invisible = ({ vmid }: Target): AppError =>
  forOperator(
    `VM ${vmid} exists, but the token may not see it.`,
    `If it is a clone that was never completed, root can remove it: qm unlock ${vmid} && qm destroy ${vmid}`,
  )
