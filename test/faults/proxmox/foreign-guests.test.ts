import { describe, expect, it, onTestFinished } from 'vitest'
import { hashToken } from '../../../src/guest/token-hash.ts'
import type { AppError } from '../../../src/jobs/errors.ts'
import type { Machine } from '../../../src/ports.ts'
import { describe as describeMachine, nameOf } from '../../../src/providers/proxmox/identity.ts'
import type { Details } from '../../../src/providers/proxmox/vm-details.ts'
import { createProxmox } from '../../../src/proxmox/proxmox-client.ts'
import type { Clock } from '../../../src/proxmox/proxmox-clock.ts'
import { parseSettings } from '../../../src/proxmox/proxmox-settings.ts'
import { never, useLab } from '../../support/begin-lab.ts'
import { hasCurl } from '../../support/curl.ts'
import { type TestEngine, until } from '../../support/engine.ts'
import { freePort } from '../../support/free-port.ts'
import type { Lab, LabOptions } from '../../support/proxmox-provider.ts'
import { newVm, type Vm } from '../../support/pve/state.ts'

const toError = (error: unknown) => error
const ID = '018f0000-0000-7000-8000-00000000000c'
const VMID = 100_007

/** So many seconds of it are over in one. */
const hurriedBy = (times: number): Clock => ({
  now: () => Date.now() * times,
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      const leave = () => {
        clearTimeout(timer)
        reject(signal?.reason)
      }
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }, ms / times)
      signal?.addEventListener('abort', leave, { once: true })
    }),
})
const hurried = hurriedBy(60)

const providerOn = (lab: Lab, clock?: Clock) => {
  const provider = lab.makeProvider({
    proxmox: createProxmox(parseSettings(lab.emulator.env()), clock ? { clock } : {}),
  })
  onTestFinished(() => provider.close())
  return provider
}

const MARKS = {
  name: nameOf(ID),
  tags: 'deputy;deputy-lab',
  description: describeMachine({ machineId: ID, owner: 'lab', createdAt: 1, tokenHash: 'a'.repeat(64) }),
}

const addVm = (lab: Lab, config: Record<string, string>, vmid = VMID): Vm => {
  const vm = newVm(vmid, 'pve1', { ...config })
  vm.pool = 'jobs'
  vm.status = 'running'
  lab.emulator.state.vms.set(vmid, vm)
  return vm
}

const record = (details: Partial<Details> = {}): Machine => ({
  id: ID,
  runtime: 'proxmox',
  jobId: null,
  details: { vmid: VMID, node: 'pve1', ready: true, ...details },
})

const count = (lab: Lab, pattern: RegExp) => lab.emulator.requests.filter(line => pattern.test(line)).length
const destroys = (lab: Lab) => count(lab, /^DELETE .*\/qemu\//) + count(lab, /\/status\/stop/)

const run = async (engine: TestEngine, manifest: Record<string, unknown>) => {
  const { job_id } = await engine.deputy.submit({ runtime: 'proxmox', ...manifest }, 'test')
  return engine.deputy.wait(job_id, { timeoutMs: 45_000, signal: never })
}

describe('destroying a machine', () => {
  it('leaves a locked guest alone that has its id but is not ours, also when the lock goes', async () => {
    const lab = await useLab()
    const vm = addVm(lab, { name: 'precious', lock: 'backup' })
    await providerOn(lab).destroy(record(), never)
    delete vm.config.lock
    expect(vm.status).toBe('running')
    expect(destroys(lab)).toBe(0)
  })

  it('waits for a lock with looks alone, and is done when it goes', async () => {
    const lab = await useLab()
    const vm = addVm(lab, { ...MARKS, lock: 'snapshot' })
    const gone = providerOn(lab).destroy(record(), never)
    await until(() => count(lab, /^GET .*\/config/) > 2, 'it was looked at')
    expect(destroys(lab)).toBe(0)
    delete vm.config.lock
    await gone
    expect(lab.machines()).toEqual([])
  })

  it('checks the owner again after a lock is removed', async () => {
    const lab = await useLab()
    const vm = addVm(lab, { ...MARKS, lock: 'backup' })
    const gone = providerOn(lab).destroy(record(), never)
    await until(() => count(lab, /^GET .*\/config/) > 1, 'it was looked at')
    vm.config = { name: 'restored', description: 'of somebody else' }
    await gone
    expect(lab.machines()).toEqual([vm])
    expect(vm.status).toBe('running')
  })

  it('waits for a clone in the making, which has no marks yet', async () => {
    const lab = await useLab()
    const vm = addVm(lab, { lock: 'clone' })
    vm.status = 'stopped'
    const gone = providerOn(lab).destroy(record({ ready: false }), never)
    await until(() => count(lab, /^GET .*\/config/) > 1, 'it was looked at')
    vm.config = { ...MARKS, tags: 'of-the-template' }
    await gone
    expect(lab.machines()).toEqual([])
  })

  it('reports a lock that stays to the operator, and starts no task for it', async () => {
    const lab = await useLab()
    addVm(lab, { ...MARKS, lock: 'clone' })
    const error = (await providerOn(lab, hurried)
      .destroy(record(), never)
      .catch(thrown => thrown)) as AppError
    expect(error.message).toBe(`VM ${VMID} is locked (clone) on pve1, and no token can remove a lock.`)
    expect(error.hint).toContain(`qm unlock ${VMID}`)
    expect(destroys(lab)).toBe(0)
  })

  it.each([
    ['its pool', {}, { pool: undefined }],
    ['its tags', { tags: 'production' }, {}],
    ['its name', { name: 'web-server' }, {}],
    ['its description', { description: 'a web server' }, {}],
  ])('neither touches nor forgets a guest that has lost %s', async (_, config, vmChanges) => {
    const lab = await useLab()
    for (const who of ['deputy@pve', 'deputy@pve!jobs'])
      lab.emulator.state.acl.push({ path: '/vms', who, role: 'DeputyJobs', propagate: true })
    const vm = Object.assign(addVm(lab, { ...MARKS, ...config }), vmChanges)
    const error = (await providerOn(lab, hurried)
      .destroy(record(), never)
      .catch(thrown => thrown)) as AppError
    expect(error.message).toContain('have been changed')
    expect(vm.status).toBe('running')
    expect(destroys(lab)).toBe(0)
  })

  it('needs no right to audit pools', async () => {
    const lab = await useLab()
    lab.emulator.state.roles.get('DeputyJobs')!.delete('Pool.Audit')
    addVm(lab, MARKS)
    const provider = providerOn(lab)
    expect(await provider.list(never)).toMatchObject([{ id: ID }])
    await provider.destroy(record(), never)
    expect(lab.machines()).toEqual([])
  })

  it('lifts a protection that came with the template', async () => {
    const lab = await useLab()
    addVm(lab, { ...MARKS, protection: '1' })
    await providerOn(lab).destroy(record(), never)
    expect(lab.machines()).toEqual([])
  })

  it('finds a machine on the node to which it was moved', async () => {
    const lab = await useLab()
    addVm(lab, MARKS).node = 'pve2'
    await providerOn(lab).destroy(record(), never)
    expect(lab.machines()).toEqual([])
  })

  it('deletes the seed image also when the machine cannot be destroyed', async () => {
    const lab = await useLab()
    addVm(lab, { ...MARKS, lock: 'backup' })
    const proxmox = createProxmox(parseSettings(lab.emulator.env()))
    onTestFinished(() => proxmox.close())
    const filename = `deputy-lab-${ID}.iso`
    await proxmox.upload({ node: 'pve2', storage: 'seeds', content: 'iso', filename, file: Buffer.from('x') })
    const seed = `seeds:iso/${filename}`
    const gone = providerOn(lab, hurried).destroy(record({ seed, seedNode: 'pve2' }), never)
    await expect(gone).rejects.toThrow('is locked (backup)')
    expect(lab.seeds()).toEqual([])
  })

  it('does not take a seed image for gone that it may not delete', async () => {
    const lab = await useLab()
    const provider = providerOn(lab)
    let details: Record<string, unknown> = {}
    const remember = async (more: Record<string, unknown>) => {
      details = { ...details, ...more }
    }
    const machine = { ...record(), details: {} }
    await provider.create({ machine, remember, signal: AbortSignal.timeout(40_000) })
    const role = lab.emulator.state.roles.get('DeputySeeds')!
    role.delete('Datastore.Allocate')
    await expect(provider.destroy({ ...machine, details }, never)).rejects.toMatchObject({
      message: expect.stringContaining('may not delete the seed image seeds:iso/deputy-lab'),
      hint: expect.stringContaining('Datastore.Allocate on /storage/seeds'),
    })
    expect(lab.machines()).toEqual([])
    role.add('Datastore.Allocate')
    await provider.destroy({ ...machine, details }, never)
    expect(lab.seeds()).toEqual([])
  })
})

describe.skipIf(!hasCurl)('a VMID used by a guest that the token cannot see', () => {
  const vmids = { first: 100_000, last: 100_003 }
  const occupy = (lab: Lab, ids: readonly number[]) => {
    for (const id of ids) lab.emulator.state.vms.set(id, newVm(id, 'pve2', { name: `other-${id}` }))
  }

  it('means the next id, and keeps neither the machine nor its seed from going', async () => {
    const lab = await useLab({ provider: { vmids } })
    occupy(lab, [100_000, 100_001, 100_002])
    const engine = await lab.open(lab.makeProvider())
    expect((await run(engine, { task: 'true' })).status).toBe('success')
    await until(async () => (await engine.deputy.machines()).length === 0, 'the record is gone', 15_000)
    expect(lab.machines().map(vm => vm.vmid)).toEqual([100_000, 100_001, 100_002])
    expect(lab.seeds()).toEqual([])
  })

  it('leaves no record behind when no other is free', async () => {
    const lab = await useLab({ provider: { vmids } })
    occupy(lab, [100_000, 100_001, 100_002, 100_003])
    const engine = await lab.open(lab.makeProvider())
    const view = await run(engine, { task: 'true', retries: 0 })
    expect(view.error?.message).toContain('100000 to 100003')
    await until(async () => (await engine.deputy.machines()).length === 0, 'the record is gone', 15_000)
    expect(lab.machines()).toHaveLength(4)
  })

  it('is not fought for after a crash either: the end of the task tells whose it is', async () => {
    const lab = await useLab()
    lab.emulator.state.vms.set(VMID, newVm(VMID, 'pve2', { name: 'other' }))
    const proxmox = createProxmox(parseSettings(lab.emulator.env()))
    onTestFinished(() => proxmox.close())
    lab.emulator.faults.addTask({ type: 'qmclone', error: 'unable to create VM: config file already exists' })
    const cloneTask = await proxmox.post<string>('/nodes/pve1/qemu/9000/clone', {
      newid: VMID + 1,
      pool: 'jobs',
    })
    await proxmox.waitTask(cloneTask).catch(() => {})
    await providerOn(lab).destroy(record({ ready: false, cloneTask }), never)
    expect(lab.emulator.state.vms.has(VMID)).toBe(true)
  })
})

describe.skipIf(!hasCurl)('a template that is protected', () => {
  it('does not make its machines immortal', async () => {
    const lab = await useLab()
    lab.emulator.state.vms.get(9000)!.config.protection = '1'
    const engine = await lab.open(lab.makeProvider())
    expect((await run(engine, { task: 'true' })).status).toBe('success')
    await until(() => lab.machines().length === 0 && lab.seeds().length === 0, 'all is gone', 30_000)
  })
})

const sweepOften: NonNullable<LabOptions['engine']> = {
  config: config => {
    config.supervision.cleanup = 0.1
  },
}

/** The sweeper has looked at the cluster this often from now on. */
const sweeps = async (lab: Lab, looks: number) => {
  const before = count(lab, /\/cluster\/nextid/)
  await until(() => count(lab, /\/cluster\/nextid/) >= before + looks, 'it was asked about', 20_000)
}

describe.skipIf(!hasCurl)('a machine that waits', () => {
  const withOneReady = async (clock?: Clock) => {
    const lab = await useLab({ provider: { poolSize: 1, injection: 'http' }, engine: sweepOften })
    const engine = await lab.open(clock ? providerOn(lab, clock) : lab.makeProvider())
    const ready = async () => (await engine.store.listMachines()).filter(({ state }) => state === 'ready')
    await until(async () => (await ready()).length === 1, 'one is ready', 40_000)
    const [machine] = await ready()
    return { lab, engine, machine: machine! }
  }

  it('outlives a while without rights', async () => {
    const { lab, engine, machine } = await withOneReady()
    const role = lab.emulator.state.roles.get('DeputyJobs')!
    role.delete('VM.Audit')
    await sweeps(lab, 3)
    role.add('VM.Audit')
    expect(await engine.store.getMachine(machine.id)).toMatchObject({ state: 'ready' })
    expect(lab.machines()).toMatchObject([{ status: 'running' }])
  })

  it('outlives the moment of its move to another node', async () => {
    const { lab, engine, machine } = await withOneReady()
    lab.emulator.faults.addRequest({
      match: /GET .*\/qemu\/\d+\/config/,
      times: 20,
      status: 500,
      message: `Configuration file 'nodes/pve1/qemu-server/${VMID}.conf' does not exist`,
    })
    await sweeps(lab, 3)
    lab.emulator.faults.clear()
    expect(await engine.store.getMachine(machine.id)).toMatchObject({ state: 'ready' })
  })

  it('outlives a cluster file system that answers nonsense', async () => {
    const { lab, engine, machine } = await withOneReady()
    lab.emulator.faults.addRequest({
      match: /GET .*\/qemu\/\d+\/config/,
      times: 10,
      status: 500,
      message: 'unable to open file - Transport endpoint is not connected',
    })
    const before = count(lab, /GET .*\/qemu\/\d+\/config/)
    await until(() => count(lab, /GET .*\/qemu\/\d+\/config/) >= before + 10, 'it was asked', 20_000)
    expect(await engine.store.getMachine(machine.id)).toMatchObject({ state: 'ready' })
    expect(lab.machines()).toMatchObject([{ status: 'running' }])
  })

  it('that cannot be destroyed gives its job to another', async () => {
    const { lab, engine, machine } = await withOneReady(hurriedBy(20))
    const [vm] = lab.machines()
    vm!.config.lock = 'backup'
    // As if the defaults had grown since it was made: it does not suit any more.
    await engine.store.updateMachine(machine.id, { details: { ...machine.details, memory: 1 } })
    const view = await run(engine, { task: 'true' })
    expect(view).toMatchObject({ status: 'success', attempts: 2 })
    expect(await engine.store.getMachine(machine.id)).toMatchObject({ state: 'destroying' })
    expect(lab.machines().some(({ vmid }) => vmid === vm!.vmid)).toBe(true)
  })

  it('is given up when its id is free', async () => {
    const { lab, engine, machine } = await withOneReady()
    const [vm] = lab.machines()
    await vm!.guest?.stop()
    lab.emulator.state.vms.delete(vm!.vmid)
    await until(async () => (await engine.store.getMachine(machine.id)) === undefined, 'it is gone', 20_000)
  })
})

describe.skipIf(!hasCurl)('a kept machine', () => {
  const keep = async (engine: TestEngine) => {
    const view = await run(engine, { task: 'echo 1 > counter', lifecycle: 'persistent' })
    expect(view.status).toBe('success')
    return view.machine_id!
  }

  it('that was migrated continues on the other node, and is destroyed completely in the end', async () => {
    const lab = await useLab()
    const engine = await lab.open(lab.makeProvider())
    const machine = await keep(engine)
    const [vm] = lab.machines()
    const before = vm!.node
    vm!.node = before === 'pve1' ? 'pve2' : 'pve1'
    const next = await run(engine, { task: 'cat counter', machine })
    expect(next.status).toBe('success')
    expect((await engine.store.getMachine(machine))?.details).toMatchObject({
      node: vm!.node,
      seedNode: before,
    })
    await engine.deputy.destroyMachine(machine)
    expect(lab.machines()).toEqual([])
    expect(lab.seeds()).toEqual([])
  })

  it('is off the record when somebody has destroyed it', async () => {
    const lab = await useLab({ engine: sweepOften })
    const engine = await lab.open(lab.makeProvider())
    const machine = await keep(engine)
    const [vm] = lab.machines()
    await vm!.guest?.stop()
    lab.emulator.state.vms.delete(vm!.vmid)
    await until(async () => (await engine.deputy.machines()).length === 0, 'it is forgotten', 20_000)
    const next = await engine.deputy
      .submit({ task: 'true', machine, runtime: 'proxmox' }, 'test')
      .catch(toError)
    expect(next).toMatchObject({ code: 'not_found' })
  })

  it('is off the record when its id is that of another guest, which is left alone', async () => {
    const lab = await useLab({ engine: sweepOften })
    const engine = await lab.open(lab.makeProvider())
    await keep(engine)
    const [vm] = lab.machines()
    await vm!.guest?.stop()
    const other = newVm(vm!.vmid, vm!.node, { name: 'database', cores: '2' })
    other.pool = 'jobs'
    lab.emulator.state.vms.set(vm!.vmid, other)
    await until(async () => (await engine.deputy.machines()).length === 0, 'it is forgotten', 20_000)
    expect(lab.machines()).toEqual([other])
    expect(lab.seeds()).toEqual([])
  })

  it('stays recorded while its id is that of a guest that the token may not see', async () => {
    const lab = await useLab({ engine: sweepOften })
    const engine = await lab.open(lab.makeProvider())
    const machine = await keep(engine)
    lab.machines()[0]!.pool = undefined
    await sweeps(lab, 3)
    expect(await engine.store.getMachine(machine)).toMatchObject({ state: 'kept' })
    lab.machines()[0]!.pool = 'jobs'
    expect((await run(engine, { task: 'cat counter', machine })).status).toBe('success')
  })

  it('is known again after a restart while the cluster is away', async () => {
    const lab = await useLab()
    const calls: string[] = []
    const onCall = (kind: string, status: number) => void calls.push(`${kind} ${status}`)
    const callback = { host: '127.0.0.1', port: await freePort() }
    const first = await lab.open(lab.makeProvider({ callback }))
    const machine = await keep(first)
    await first.close()
    lab.emulator.faults.addRequest({ match: '/api2/', drop: 'before' })
    const again = await lab.open(lab.makeProvider({ callback, onCall }))
    await until(() => calls.length > 0, 'the machine calls', 40_000)
    expect(calls.filter(call => !/^(work|begin) 20/.test(call))).toEqual([])
    lab.emulator.faults.clear()
    expect((await run(again, { task: 'cat counter', machine })).status).toBe('success')
  })
})

describe.skipIf(!hasCurl)('what is written on a guest', () => {
  it('gives the orders of its machine to no other client', async () => {
    const lab = await useLab({ engine: sweepOften })
    const callback = { host: '127.0.0.1', port: await freePort() }
    const engine = await lab.open(lab.makeProvider({ callback }))
    const { job_id } = await engine.deputy.submit({ task: 'sleep 4', runtime: 'proxmox' }, 'test')
    await until(async () => (await engine.deputy.get(job_id)).status === 'running', 'it runs', 30_000)
    const token = 'of-somebody-who-may-edit-descriptions'
    const [vm] = lab.machines()
    const mine = vm!.config.description!
    vm!.config.description = mine.replace(/token=[0-9a-f]+/, `token=${hashToken(token)}`)
    const before = count(lab, /GET .*\/config/)
    await until(() => count(lab, /GET .*\/config/) > before + 1, 'the description was read', 20_000)
    const headers = { authorization: `Bearer ${token}` }
    const answer = await fetch(`http://127.0.0.1:${callback.port}/guest/v1/work`, { headers })
    expect([401, 503]).toContain(answer.status)
    vm!.config.description = mine
    const view = await engine.deputy.wait(job_id, { timeoutMs: 45_000, signal: never })
    expect(view).toMatchObject({ status: 'success', error: null })
  })
})

describe.skipIf(!hasCurl)('a machine whose lock no token can remove', () => {
  it('is shown with the command of the operator, and goes when that was given', async () => {
    const lab = await useLab()
    const engine = await lab.open(providerOn(lab, hurried))
    addVm(lab, { ...MARKS, lock: 'clone' })
    await engine.store.insertMachine({
      ...record(),
      state: 'kept',
      createdAt: Date.now(),
      leaseUntil: null,
      attempts: 0,
      notBefore: 0,
      lastError: null,
    })
    await expect(engine.deputy.destroyMachine(ID)).rejects.toThrow('not destroyed yet')
    const [machine] = await engine.deputy.machines()
    expect(machine).toMatchObject({
      state: 'destroying',
      problem: expect.stringContaining(`qm unlock ${VMID}`),
    })
    const [readiness] = await engine.deputy.doctor(never)
    expect(readiness!.checks.find(check => check.name === 'machine')).toMatchObject({
      status: 'warning',
      message: expect.stringContaining(`qm unlock ${VMID}`),
      fix: `deputy machines rm ${ID}`,
    })
    delete lab.machines()[0]!.config.lock
    await engine.deputy.destroyMachine(ID)
    expect(await engine.deputy.machines()).toEqual([])
    expect(lab.machines()).toEqual([])
  })
})
