import { check, isRealRoot, may } from '../acl.ts'
import { badParams, die, forbidden, PveError } from '../errors.ts'
import { type Context, NODE, type Operation, text, VMID } from '../operation.ts'
import { DRIVE, parseProps, printProps } from '../properties.ts'
import type { Values } from '../schema.ts'
import { isTemplate, newVm, type State, type Vm } from '../state.ts'
import { startTask } from '../tasks.ts'
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
import { CONFIG_PARAMS } from './config-keys.ts'
import { checkConfigRights } from './config-rights.ts'
import { applyConfig } from './config-values.ts'
import { powerOff, powerOn } from './power.ts'

export const lifecycleOperations: readonly Operation[] = [
  {
    method: 'GET',
    path: '/nodes/{node}/qemu',
    name: 'vmlist',
    description: 'Lists the virtual machines of a node.',
    params: { node: NODE, full: { type: 'boolean', optional: true } },
    permission: { user: 'all' },
    onNode: true,
    returns: 'array',
    run: ({ state, auth, params }) =>
      [...state.vms.values()]
        .filter(vm => vm.node === params.node && may(state, auth, `/vms/${vm.vmid}`, ['VM.Audit']))
        .map(vm => ({
          vmid: vm.vmid,
          name: vm.config.name ?? `VM ${vm.vmid}`,
          status: vm.status,
          cpus: Number(vm.config.cores ?? 1),
          maxmem: Number(vm.config.memory ?? 512) * 1024 ** 2,
          ...(isTemplate(vm) ? { template: 1 } : {}),
          ...(vm.config.tags ? { tags: vm.config.tags } : {}),
          ...(vm.config.lock ? { lock: vm.config.lock } : {}),
        })),
  },
  {
    method: 'POST',
    path: '/nodes/{node}/qemu',
    name: 'create_vm',
    description: 'Makes a virtual machine.',
    params: {
      node: NODE,
      vmid: VMID,
      pool: { type: 'string', optional: true, format: 'pve-poolid' },
      start: { type: 'boolean', optional: true },
      unique: { type: 'boolean', optional: true },
      storage: { type: 'string', optional: true, format: 'pve-storage-id' },
      ...CONFIG_PARAMS,
    },
    permission: { user: 'all' },
    onNode: true,
    returns: 'string',
    run: context => create(context),
  },
  {
    method: 'DELETE',
    path: '/nodes/{node}/qemu/{vmid}',
    name: 'destroy_vm',
    description: 'Destroys a virtual machine and its disks.',
    params: {
      node: NODE,
      vmid: VMID,
      purge: { type: 'boolean', optional: true },
      'destroy-unreferenced-disks': { type: 'boolean', optional: true },
      skiplock: { type: 'boolean', optional: true },
    },
    permission: { check: ['/vms/{vmid}', ['VM.Allocate']] },
    onNode: true,
    returns: 'string',
    run: context => destroy(context),
  },
  {
    method: 'POST',
    path: '/nodes/{node}/qemu/{vmid}/template',
    name: 'template',
    description: 'Turns a virtual machine into a template.',
    params: { node: NODE, vmid: VMID, disk: { type: 'string', optional: true } },
    permission: { check: ['/vms/{vmid}', ['VM.Allocate']] },
    onNode: true,
    returns: 'string',
    run: context => {
      const vm = vmOf(context)
      if (isTemplate(vm)) die("you can't convert a template to a template")
      if (vm.status === 'running') die("you can't convert a VM to template if VM is running")
      return startTask(
        context,
        { node: vm.node, type: 'qmtemplate', id: String(vm.vmid), auth: context.auth },
        () =>
          withConfigLock(context.state, vm.vmid, async () => {
            for (const drive of drivesOf(vm.config)) if (!drive.cdrom) makeBase(context.state, vm, drive)
            vm.config.template = '1'
          }),
      )
    },
  },
  {
    method: 'GET',
    path: '/nodes/{node}/qemu/{vmid}/status/current',
    name: 'vm_status',
    description: 'Tells the state of a virtual machine.',
    params: { node: NODE, vmid: VMID },
    permission: { check: ['/vms/{vmid}', ['VM.Audit']] },
    onNode: true,
    returns: 'object',
    run: context => {
      const vm = vmOf(context)
      const running = vm.status === 'running'
      return {
        vmid: vm.vmid,
        name: vm.config.name ?? `VM ${vm.vmid}`,
        status: vm.status,
        qmpstatus: vm.status,
        uptime: running ? Math.floor((Date.now() - vm.startedAt) / 1000) : 0,
        cpus: Number(vm.config.cores ?? 1),
        maxmem: Number(vm.config.memory ?? 512) * 1024 ** 2,
        ha: { managed: 0 },
        ...(running ? { pid: 100_000 + (vm.vmid % 100_000) } : {}),
        ...(/^(1|enabled=1)/.test(vm.config.agent ?? '') ? { agent: 1 } : {}),
        ...(vm.config.lock ? { lock: vm.config.lock } : {}),
        ...(isTemplate(vm) ? { template: 1 } : {}),
      }
    },
  },
  power('start', 'qmstart', async (context, task) => {
    const vm = vmOf(context)
    refuseIfLocked(vm)
    if (isTemplate(vm)) die("you can't start a vm if it's a template")
    if (vm.status === 'running') die(`VM ${vm.vmid} already running`)
    await task.step('start', context.state.timing.startMs)
    await powerOn(context, vm)
  }),
  power('stop', 'qmstop', async (context, task) => {
    const vm = vmOf(context)
    refuseIfLocked(vm)
    await task.step('stop', context.state.timing.stopMs)
    await powerOff(vm)
  }),
  power('shutdown', 'qmshutdown', async (context, task) => {
    const vm = vmOf(context)
    refuseIfLocked(vm)
    if (vm.status !== 'running') die(`VM ${vm.vmid} not running`)
    await task.step('shutdown', context.state.timing.stopMs)
    if (await vm.guest?.shutdown()) return powerOff(vm)
    if (!context.params.forceStop) die('VM quit/powerdown failed - got timeout')
    await powerOff(vm)
  }),
  power('reset', 'qmreset', async (context, task) => {
    const vm = vmOf(context)
    if (vm.status !== 'running') die(`VM ${vm.vmid} not running`)
    await task.step('reset', context.state.timing.stopMs)
    await powerOff(vm)
    await powerOn(context, vm)
  }),
  power('reboot', 'qmreboot', async (context, task) => {
    const vm = vmOf(context)
    if (vm.status !== 'running') die(`VM ${vm.vmid} not running`)
    await task.step('reboot', context.state.timing.stopMs)
    await powerOff(vm)
    await powerOn(context, vm)
  }),
]

function power(
  verb: string,
  type: string,
  work: (context: Context, task: Parameters<Parameters<typeof startTask>[2]>[0]) => Promise<void>,
): Operation {
  return {
    method: 'POST',
    path: `/nodes/{node}/qemu/{vmid}/status/${verb}`,
    name: `vm_${verb}`,
    description: `Does ${verb} on a virtual machine.`,
    params: {
      node: NODE,
      vmid: VMID,
      skiplock: { type: 'boolean', optional: true },
      timeout: { type: 'integer', optional: true, minimum: 0 },
      ...(verb === 'shutdown' ? { forceStop: { type: 'boolean', optional: true } } : {}),
      ...(verb === 'stop'
        ? {
            'overrule-shutdown': { type: 'boolean', optional: true },
            keepActive: { type: 'boolean', optional: true },
          }
        : {}),
    },
    permission: { check: ['/vms/{vmid}', ['VM.PowerMgmt']] },
    onNode: true,
    returns: 'string',
    run: context => {
      const vm = vmOf(context)
      if (context.params.skiplock && !isRealRoot(context.auth))
        throw new PveError(403, 'Only root may use this option.')
      // The lock is waited for inside the task: a locked guest makes the task fail, not the call.
      return startTask(context, { node: vm.node, type, id: String(vm.vmid), auth: context.auth }, task =>
        withConfigLock(context.state, vm.vmid, () => work(context, task)),
      )
    },
  }
}

const create = (context: Context): string => {
  const { state, auth, params } = context
  const { node, vmid, pool, start, unique: _, storage: __, ...config } = params
  const id = Number(vmid)
  if (
    !may(state, auth, `/vms/${id}`, ['VM.Allocate']) &&
    !(pool !== undefined && may(state, auth, `/pool/${pool}`, ['VM.Allocate']))
  ) {
    throw forbidden()
  }
  checkConfigRights(context, pool === undefined ? `/vms/${id}` : `/pool/${pool}`, config)
  if (pool !== undefined && !state.pools.has(String(pool)))
    throw badParams({ pool: `pool '${pool}' does not exist` })
  if (state.vms.has(id))
    die(`unable to create VM ${id} - VM ${id} already exists on node '${state.vms.get(id)!.node}'`)
  return startTask(context, { node: String(node), type: 'qmcreate', id: String(id), auth }, task =>
    withConfigLock(state, id, async () => {
      if (state.vms.has(id)) die(`unable to create VM ${id}: config file already exists`)
      const vm = newVm(id, String(node), { lock: 'create' })
      state.vms.set(id, vm)
      try {
        await task.step('create', state.timing.taskMs)
        applyConfig(context, vm, config)
        await importDisk(context, vm, config)
        delete vm.config.lock
        vm.pool = text(params, 'pool')
        if (start) await powerOn(context, vm)
      } catch (error) {
        state.vms.delete(id)
        throw error
      }
    }),
  )
}

/** The disk of a template has another name: it is not to be written to again. */
const makeBase = (state: State, vm: Vm, { key, volid, props }: Drive): void => {
  const volume = volumeOf(state, volid, vm.node)
  if (!volume) return
  const base = volid.replace(/:vm-/, ':base-')
  dropVolume(state, volid, vm.node)
  putVolume(state, { ...volume, volid: base }, vm.node)
  vm.config[key] = printProps({ ...props, file: base }, 'file')
}

/** A machine that is made of an image begins with what that holds. */
const importDisk = async ({ state, guests }: Context, vm: Vm, config: Values): Promise<void> => {
  for (const [key, value] of Object.entries(config)) {
    const source = DRIVE.test(key) ? parseProps(String(value), 'file')['import-from'] : undefined
    const content = source === undefined ? undefined : volumeOf(state, source, vm.node)?.data
    if (content) return guests.imported?.(vm.vmid, content)
  }
}

const destroy = (context: Context): string => {
  const { state, auth } = context
  const vm = vmOf(context)
  if (vm.config.protection === '1') die(`can't remove VM ${vm.vmid} - protection mode enabled`)
  if (vm.status === 'running') die(`VM ${vm.vmid} is running - destroy failed`)
  check(state, auth, `/vms/${vm.vmid}`, ['VM.Allocate'])
  return startTask(context, { node: vm.node, type: 'qmdestroy', id: String(vm.vmid), auth }, task =>
    withConfigLock(state, vm.vmid, async () => {
      refuseIfLocked(vm)
      if (vm.status === 'running') die(`VM ${vm.vmid} is running - destroy failed`)
      for (const volume of state.volumes.values()) {
        if (volume.base && drivesOf(vm.config).some(drive => drive.volid === volume.base)) {
          die(`base volume '${volume.base}' is still in use by linked cloned '${volume.volid}'`)
        }
      }
      await task.step('destroy', state.timing.taskMs)
      for (const drive of drivesOf(vm.config))
        if (!drive.cdrom || drive.cloudinit) dropVolume(state, drive.volid, vm.node)
      if (context.params['destroy-unreferenced-disks'])
        for (const volume of [...state.volumes.values()])
          if (volume.vmid === vm.vmid) dropVolume(state, volume.volid, volume.node ?? vm.node)
      await context.guests.destroyed?.(vm.vmid)
      state.vms.delete(vm.vmid)
    }),
  )
}
