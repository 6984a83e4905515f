import { die } from '../errors.ts'
import { NODE, type Operation, VMID } from '../operation.ts'
import { startTask } from '../tasks.ts'
import { refuseIfLocked, vmOf, withConfigLock } from '../vm.ts'
import { powerOff, powerOn } from './power.ts'

const SNAPNAME = { type: 'string', format: 'pve-configid', maxLength: 40 } as const

export const snapshotOperations: readonly Operation[] = [
  {
    method: 'GET',
    path: '/nodes/{node}/qemu/{vmid}/snapshot',
    name: 'snapshot_list',
    description: 'Lists the snapshots of a virtual machine.',
    params: { node: NODE, vmid: VMID },
    permission: { check: ['/vms/{vmid}', ['VM.Audit']] },
    onNode: true,
    returns: 'array',
    run: context => {
      const vm = vmOf(context)
      return [
        ...vm.snapshots.map(({ name, description, time, parent }) => ({
          name,
          description,
          snaptime: time,
          ...(parent ? { parent } : {}),
        })),
        { name: 'current', description: 'You are here!', running: vm.status === 'running' ? 1 : 0 },
      ]
    },
  },
  {
    method: 'POST',
    path: '/nodes/{node}/qemu/{vmid}/snapshot',
    name: 'snapshot',
    description: 'Takes a snapshot of a virtual machine.',
    params: {
      node: NODE,
      vmid: VMID,
      snapname: SNAPNAME,
      description: { type: 'string', optional: true },
      vmstate: { type: 'boolean', optional: true },
    },
    permission: { check: ['/vms/{vmid}', ['VM.Snapshot']] },
    onNode: true,
    returns: 'string',
    run: context => {
      const vm = vmOf(context)
      const name = String(context.params.snapname)
      if (name === 'current') die("unable to use snapshot name 'current' (reserved name)")
      return startTask(
        context,
        { node: vm.node, type: 'qmsnapshot', id: String(vm.vmid), auth: context.auth },
        task =>
          withConfigLock(context.state, vm.vmid, async () => {
            refuseIfLocked(vm)
            if (vm.snapshots.some(one => one.name === name)) die(`snapshot name '${name}' already used`)
            await task.step('snapshot', context.state.timing.taskMs)
            const parent = vm.snapshots.at(-1)?.name
            vm.snapshots.push({
              name,
              description: String(context.params.description ?? ''),
              time: Math.floor(Date.now() / 1000),
              config: { ...vm.config },
              parent,
            })
          }),
      )
    },
  },
  {
    method: 'POST',
    path: '/nodes/{node}/qemu/{vmid}/snapshot/{snapname}/rollback',
    name: 'rollback',
    description: 'Brings a virtual machine back to a snapshot.',
    params: { node: NODE, vmid: VMID, snapname: SNAPNAME, start: { type: 'boolean', optional: true } },
    permission: { check: ['/vms/{vmid}', ['VM.Snapshot', 'VM.Snapshot.Rollback']], any: true },
    onNode: true,
    returns: 'string',
    run: context => {
      const vm = vmOf(context)
      return startTask(
        context,
        { node: vm.node, type: 'qmrollback', id: String(vm.vmid), auth: context.auth },
        task =>
          withConfigLock(context.state, vm.vmid, async () => {
            const found =
              vm.snapshots.find(one => one.name === context.params.snapname) ??
              die(`snapshot '${context.params.snapname}' does not exist`)
            await task.step('rollback', context.state.timing.taskMs)
            await powerOff(vm)
            vm.config = { ...found.config }
            if (context.params.start) await powerOn(context, vm)
          }),
      )
    },
  },
  {
    method: 'DELETE',
    path: '/nodes/{node}/qemu/{vmid}/snapshot/{snapname}',
    name: 'delsnapshot',
    description: 'Deletes a snapshot of a virtual machine.',
    params: { node: NODE, vmid: VMID, snapname: SNAPNAME, force: { type: 'boolean', optional: true } },
    permission: { check: ['/vms/{vmid}', ['VM.Snapshot']] },
    onNode: true,
    returns: 'string',
    run: context => {
      const vm = vmOf(context)
      return startTask(
        context,
        { node: vm.node, type: 'qmdelsnapshot', id: String(vm.vmid), auth: context.auth },
        task =>
          withConfigLock(context.state, vm.vmid, async () => {
            const at = vm.snapshots.findIndex(one => one.name === context.params.snapname)
            if (at < 0) die(`snapshot '${context.params.snapname}' does not exist`)
            await task.step('delete', context.state.timing.taskMs)
            vm.snapshots.splice(at, 1)
          }),
      )
    },
  },
]
