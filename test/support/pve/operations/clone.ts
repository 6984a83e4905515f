import { check, may } from '../acl.ts'
import { badParams, die, forbidden } from '../errors.ts'
import { type Context, NODE, type Operation, text, VMID } from '../operation.ts'
import { parseProps, printProps } from '../properties.ts'
import { freshIdentity, isTemplate, newVm, type State, storageOn, usedOn, type Vm } from '../state.ts'
import { startTask, type TaskContext } from '../tasks.ts'
import {
  type Drive,
  drivesOf,
  dropVolume,
  putVolume,
  refuseIfLocked,
  vmOf,
  volumeOf,
  withConfigLock,
  withStorageLock,
} from '../vm.ts'
import { checkBridge } from './config-rights.ts'

export const cloneOperations: readonly Operation[] = [
  {
    method: 'POST',
    path: '/nodes/{node}/qemu/{vmid}/clone',
    name: 'clone_vm',
    description: 'Makes a copy of a virtual machine or template.',
    params: {
      node: NODE,
      vmid: VMID,
      newid: VMID,
      name: { type: 'string', optional: true, format: 'dns-name' },
      description: { type: 'string', optional: true },
      pool: { type: 'string', optional: true, format: 'pve-poolid' },
      full: { type: 'boolean', optional: true },
      storage: { type: 'string', optional: true, format: 'pve-storage-id' },
      format: { type: 'string', optional: true, enum: ['raw', 'qcow2', 'vmdk'] },
      target: { type: 'string', optional: true, format: 'pve-node' },
      snapname: { type: 'string', optional: true, maxLength: 40, format: 'pve-configid' },
      bwlimit: { type: 'integer', optional: true, minimum: 0 },
    },
    permission: { check: ['/vms/{vmid}', ['VM.Clone']] },
    onNode: true,
    returns: 'string',
    run: context => clone(context),
  },
]

const clone = (context: Context): string => {
  const { state, auth, params } = context
  const source = vmOf(context)
  const newid = Number(params.newid)
  const pool = text(params, 'pool')
  const target = text(params, 'target') ?? source.node
  const full = params.full === undefined ? !isTemplate(source) : params.full === true
  const storage = text(params, 'storage')

  if (
    !may(state, auth, `/vms/${newid}`, ['VM.Allocate']) &&
    !(pool !== undefined && may(state, auth, `/pool/${pool}`, ['VM.Allocate']))
  ) {
    throw forbidden()
  }
  if (pool !== undefined && !state.pools.has(pool)) throw badParams({ pool: `pool '${pool}' does not exist` })
  if (!full && storage !== undefined) die("parameter 'storage' not allowed for linked clones")
  if (!full && params.format !== undefined) die("parameter 'format' not allowed for linked clones")
  if (!state.nodes.has(target)) die(`no such cluster node '${target}'`)
  refuseIfLocked(source)
  const disks = drivesOf(source.config).filter(drive => !drive.cdrom || drive.cloudinit)
  for (const drive of drivesOf(source.config)) checkDrive(context, drive, { full, storage, target, source })
  for (const [key, value] of Object.entries(source.config))
    if (/^net\d+$/.test(key)) checkBridge(context, value)
  const taken = state.vms.get(newid)
  // While another clone makes it, the call passes and the task finds out.
  if (taken && taken.config.lock !== 'clone') die(`unable to create VM ${newid}: config file already exists`)

  return startTask(context, { node: source.node, type: 'qmclone', id: String(source.vmid), auth }, task =>
    // A running source is locked against others, a stopped one only against changes.
    withConfigLock(
      state,
      source.vmid,
      () => copy(context, task, { source, newid, target, full, storage, disks, pool }),
      { shared: source.status !== 'running', timeoutMs: Math.min(1000, state.timing.lockTimeoutMs) },
    ),
  )
}

interface Plan {
  source: Vm
  newid: number
  target: string
  full: boolean
  storage: string | undefined
  disks: Drive[]
  pool: string | undefined
}

const checkDrive = (
  { state, auth }: Context,
  disk: Drive,
  { full, storage, target, source }: Pick<Plan, 'full' | 'storage' | 'target' | 'source'>,
): void => {
  if (disk.volid === 'none') return
  const origin = disk.volid.split(':')[0]!
  // Images in CD-ROM drives stay where they are, but they count: the other node could not read them.
  if (target !== source.node && !state.storages.get(origin)?.shared)
    die(`can't clone VM to node '${target}' (VM uses local storage)`)
  if (disk.cdrom && !disk.cloudinit) {
    check(state, auth, `/storage/${origin}`, ['Datastore.Audit', 'Datastore.AllocateSpace'], true)
    return
  }
  const destination = storage ?? origin
  const definition = state.storages.get(destination) ?? die(`storage '${destination}' does not exist`)
  check(state, auth, `/storage/${destination}`, ['Datastore.AllocateSpace'])
  if (!full && !disk.cloudinit && (definition.type === 'lvm' || !isTemplate(source)))
    die(`Linked clone feature is not supported for drive '${disk.key}'`)
  if (!storageOn(definition, target)) die(`storage '${destination}' is not available on node '${target}'`)
}

/** The file of the new guest decides who won; its lock is held until the copy is complete. */
const copy = async (context: Context, task: TaskContext, plan: Plan): Promise<void> => {
  const { state } = context
  if (state.vms.has(plan.newid)) die(`unable to create VM ${plan.newid}: config file already exists`)
  const vm = newVm(plan.newid, plan.target, { lock: 'clone' })
  state.vms.set(plan.newid, vm)
  await withConfigLock(state, plan.newid, () => fill(context, task, plan, vm))
}

const fill = async (context: Context, task: TaskContext, plan: Plan, vm: Vm): Promise<void> => {
  const { state, params } = context
  const { source, newid, target, full, disks, pool } = plan
  const made: string[] = []
  try {
    const config = inherit(source, String(params.name ?? `Copy-of-VM-${source.config.name ?? source.vmid}`))
    for (const disk of disks) {
      const volid = await allocate(context, task, plan, disk)
      made.push(volid)
      config[disk.key] = printProps({ ...disk.props, file: volid }, 'file')
    }
    for (const drive of drivesOf(source.config))
      if (drive.cdrom && !drive.cloudinit) config[drive.key] = source.config[drive.key]!
    await task.step('copy', full ? state.timing.fullCloneMs : state.timing.cloneMs)
    await context.guests.cloned?.({ from: source.vmid, to: newid, full })
    if (params.description !== undefined) config.description = String(params.description)
    vm.config = config
    vm.firewall = structuredClone(source.firewall)
    // Only now do the rights of the pool reach the new guest.
    vm.pool = pool
  } catch (error) {
    for (const volid of made) dropVolume(state, volid, target)
    state.vms.delete(newid)
    throw new Error(`clone failed: ${(error as Error).message}`)
  }
}

const inherit = (source: Vm, name: string): Record<string, string> => {
  const { template: _, lock: __, parent: ___, ...config } = source.config
  const copied: Record<string, string> = { ...config, name }
  for (const [key, value] of Object.entries(config)) {
    if (!/^net\d+$/.test(key)) continue
    const [model = 'virtio'] = Object.keys(parseProps(value, 'model'))
    copied[key] = printProps({ ...parseProps(value, 'model'), [model]: freshIdentity().mac }, '')
  }
  const identity = freshIdentity()
  copied.smbios1 = printProps({ ...parseProps(config.smbios1 ?? '', ''), uuid: identity.uuid }, '')
  copied.vmgenid = identity.vmgenid
  return copied
}

const allocate = async ({ state }: Context, task: TaskContext, plan: Plan, disk: Drive): Promise<string> => {
  const storage = plan.storage ?? disk.volid.split(':')[0]!
  const definition = state.storages.get(storage)!
  return withStorageLock(state, storage, async () => {
    await task.step('allocate', state.timing.taskMs)
    const origin =
      volumeOf(state, disk.volid, plan.source.node) ??
      (disk.cloudinit ? { size: 4 * 1024 ** 2 } : die(`volume '${disk.volid}' does not exist`))
    const size = plan.full ? origin.size : 0
    if (usedOn(state, definition, plan.target) + size > definition.total)
      die('unable to create image: No space left on device')
    const volid = disk.cloudinit ? `${storage}:vm-${plan.newid}-cloudinit` : freeVolid(state, storage, plan)
    putVolume(
      state,
      {
        volid,
        storage,
        node: definition.shared ? undefined : plan.target,
        content: 'images',
        size: origin.size,
        vmid: plan.newid,
        ctime: Math.floor(Date.now() / 1000),
        ...(plan.full || disk.cloudinit ? {} : { base: disk.volid }),
      },
      plan.target,
    )
    return volid
  })
}

const freeVolid = (state: State, storage: string, plan: Plan): string => {
  for (let index = 0; ; index++) {
    const volid = `${storage}:vm-${plan.newid}-disk-${index}`
    if (!volumeOf(state, volid, plan.target)) return volid
  }
}
