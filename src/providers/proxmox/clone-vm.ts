import { AppError } from '../../jobs/errors.ts'
import { path } from '../../proxmox/encode.ts'
import type { Proxmox } from '../../proxmox/proxmox-client.ts'
import { proxmoxDetails, UncertainError } from '../../proxmox/proxmox-errors.ts'
import { readConfig, type Template } from './cluster-guests.ts'
import { isGone } from './destroy-vm.ts'
import { identityOf } from './identity.ts'
import { retryThroughOutage } from './retry-through-outage.ts'

export interface CloneRequest {
  readonly template: Template
  readonly machineId: string
  readonly name: string
  readonly description: string
  readonly pool: string
  readonly node: string
  readonly linked: boolean
  /** Returns a new id, which is stored before it returns. */
  nextId(): Promise<number>
  /** Called when another guest has this id. */
  taken(vmid: number): Promise<void>
  /** Called when it is unknown whether a clone with this id will exist. */
  doubt(vmid: number): void
  /** Called with the task once there is one. */
  began(task: string): Promise<void>
  readonly deadline: number
  readonly waiting?: ((what: string) => void) | undefined
  readonly signal: AbortSignal
}

const ATTEMPTS = 10

/** Makes the clone and returns its id. The id is ours only when the clone task succeeds, not when the call does. */
export const cloneTemplate = async (proxmox: Proxmox, request: CloneRequest): Promise<number> => {
  for (let attempt = 1; ; attempt++) {
    const vmid = await request.nextId()
    try {
      await retryThroughOutage(proxmox, () => cloneOnce(proxmox, request, vmid), {
        ...request,
        lostAnswers: 0,
      })
      return vmid
    } catch (error) {
      if (error instanceof UncertainError) {
        if (await appeared(proxmox, request, vmid)) return vmid
        request.doubt(vmid)
      } else if (proxmoxDetails(error)?.kind === 'exists') await request.taken(vmid)
      else throw error
      if (attempt >= ATTEMPTS) throw error
    }
  }
}

const cloneOnce = async (proxmox: Proxmox, request: CloneRequest, vmid: number): Promise<void> => {
  const { template, node, linked, signal, deadline } = request
  const task = await proxmox.post<string>(
    path`/nodes/${template.node}/qemu/${template.vmid}/clone`,
    {
      newid: vmid,
      name: request.name,
      description: request.description,
      pool: request.pool,
      full: !linked,
      ...(node === template.node ? {} : { target: node }),
    },
    { signal },
  )
  // The VMID is stored already. Storing the task too makes recovery after a restart faster.
  await Promise.all([request.began(task), proxmox.waitTask(task, { signal, deadline })])
}

/**
 * Checks after a lost response. A clone has our description, and is visible, when it is complete. If the id is free,
 * the call had no effect.
 */
const appeared = async (
  proxmox: Proxmox,
  { node, machineId, signal, deadline }: CloneRequest,
  vmid: number,
): Promise<boolean> => {
  for (let quiet = 0; proxmox.clock.now() < deadline; ) {
    const config = await readConfig(proxmox, { node, vmid }, signal).catch(() => undefined)
    if (config && config.lock === undefined)
      return identityOf(String(config.description ?? ''))?.machineId === machineId
    // The worker may not have written the configuration yet: check more than once.
    quiet = (await isGone(proxmox, vmid, signal)) ? quiet + 1 : 0
    if (quiet >= 3) return false
    await proxmox.clock.sleep(500, signal)
  }
  throw new AppError('timeout', `It could not be learnt whether the clone ${vmid} was made.`, {
    hint: `Look for it on the cluster: qm config ${vmid}`,
  })
}
