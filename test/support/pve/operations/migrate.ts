import { isRealRoot } from '../acl.ts'
import { badParams, die } from '../errors.ts'
import { type Context, NODE, type Operation, VMID } from '../operation.ts'
import { isTemplate, type Vm } from '../state.ts'
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
} from '../vm.ts'

export const migrateOperations: readonly Operation[] = [
  {
    method: 'GET',
    path: '/nodes/{node}/qemu/{vmid}/migrate',
    name: 'migrate_vm_precondition',
    description: 'Tells what is in the way of a migration.',
    params: { node: NODE, vmid: VMID, target: { ...NODE, optional: true } },
    permission: { check: ['/vms/{vmid}', ['VM.Migrate']] },
    onNode: true,
    returns: 'object',
    run: context => {
      const vm = vmOf(context)
      const others = [...context.state.nodes.keys()].filter(name => name !== vm.node)
      return {
        running: Number(vm.status === 'running'),
        allowed_nodes: others,
        local_disks: localDrives(context, vm).map(({ volid, cdrom }) => ({ volid, cdrom: Number(cdrom) })),
        local_resources: [],
        'mapped-resources': [],
      }
    },
  },
  {
    method: 'POST',
    path: '/nodes/{node}/qemu/{vmid}/migrate',
    name: 'migrate_vm',
    description: 'Moves a virtual machine to another node.',
    params: {
      node: NODE,
      vmid: VMID,
      target: NODE,
      online: { type: 'boolean', optional: true },
      force: { type: 'boolean', optional: true },
      'with-local-disks': { type: 'boolean', optional: true },
      'with-conntrack-state': { type: 'boolean', optional: true },
      migration_type: { type: 'string', optional: true, enum: ['secure', 'insecure'] },
      bwlimit: { type: 'integer', optional: true, minimum: 0 },
    },
    permission: { check: ['/vms/{vmid}', ['VM.Migrate']] },
    onNode: true,
    returns: 'string',
    run: context => {
      const { state, params, auth } = context
      const vm = vmOf(context)
      const target = String(params.target)
      if (target === vm.node) throw badParams({ target: 'target is local node.' })
      if (!state.nodes.has(target)) die(`no such cluster node '${target}'`)
      if (params.force && !isRealRoot(auth)) throw badParams({ force: 'Only root may use this option.' })
      if (vm.status === 'running' && !params.online) die("can't migrate running VM without --online")
      const about = { node: vm.node, type: 'qmigrate', id: String(vm.vmid), auth }
      return startTask(context, about, task =>
        withConfigLock(state, vm.vmid, () => migrate(context, task, vm, target)),
      )
    },
  },
]

/** The guest goes on all the while; its configuration is locked until it is on the other node. */
const migrate = async (context: Context, task: TaskContext, vm: Vm, target: string): Promise<void> => {
  const { state, params } = context
  refuseIfLocked(vm)
  task.log(`starting migration of VM ${vm.vmid} to node '${target}'`)
  const obstacles = localDrives(context, vm).flatMap(drive => obstacleOf(drive, vm, context) ?? [])
  for (const words of obstacles) task.log(words)
  if (obstacles.length > 0)
    return abort(task, "Problem found while scanning volumes - can't migrate VM - check log")
  if (!state.nodes.get(target)?.up)
    return abort(task, `Can't connect to destination address using public key`)
  vm.config.lock = 'migrate'
  try {
    await task.step('migrate', state.timing.migrateMs)
  } catch (error) {
    return abort(task, (error as Error).message)
  } finally {
    delete vm.config.lock
  }
  if (params['with-local-disks']) moveVolumes(context, vm, target)
  vm.node = target
  task.log('migration finished successfully (duration 00:00:01)')
}

const abort = (task: TaskContext, why: string): never => {
  task.log(`ERROR: migration aborted (duration 00:00:00): ${why}`)
  return die('migration aborted')
}

const localDrives = ({ state }: Context, vm: Vm): Drive[] =>
  drivesOf(vm.config).filter(
    ({ volid, cloudinit }) =>
      volid.includes(':') && !cloudinit && state.storages.get(volid.split(':')[0]!)?.shared !== true,
  )

const obstacleOf = ({ volid, cdrom }: Drive, vm: Vm, { state, params }: Context): string | undefined => {
  const because = (why: string) => `can't migrate local disk '${volid}': ${why}`
  if (cdrom) return because('local cdrom image')
  if (volumeOf(state, volid, vm.node)?.base !== undefined || isTemplate(vm))
    return because(`can't migrate '${volid}' as it's a clone`)
  if (vm.status === 'running' && !params['with-local-disks'])
    return because("can't live migrate attached local disks without with-local-disks option")
  return undefined
}

const moveVolumes = (context: Context, vm: Vm, target: string): void => {
  const { state } = context
  for (const { volid } of localDrives(context, vm)) {
    const volume = volumeOf(state, volid, vm.node)
    if (!volume) continue
    dropVolume(state, volid, vm.node)
    putVolume(state, { ...volume, node: target }, target)
  }
}
