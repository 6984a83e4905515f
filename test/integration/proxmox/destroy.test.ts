import { afterEach, describe, expect, it } from 'vitest'
import { AppError } from '../../../src/jobs/errors.ts'
import { newId } from '../../../src/jobs/ids.ts'
import { isOperatorError } from '../../../src/jobs/operator-error.ts'
import { destroyVm } from '../../../src/providers/proxmox/destroy-vm.ts'
import { describe as describeMachine, nameOf, tagsOf } from '../../../src/providers/proxmox/identity.ts'
import { createProxmox } from '../../../src/proxmox/proxmox-client.ts'
import { parseSettings } from '../../../src/proxmox/proxmox-settings.ts'
import { startEmulator } from '../../support/pve/emulator.ts'
import { newVm } from '../../support/pve/state.ts'

const VMID = 100_042
const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** A cluster with one VM that has the id of ours, and a clock that waits for nobody. */
const begin = async (config: (machineId: string) => Record<string, string>) => {
  const emulator = await startEmulator()
  closers.push(() => emulator.close())
  const machineId = newId()
  const vm = newVm(VMID, 'pve1', config(machineId))
  vm.pool = 'jobs'
  emulator.state.vms.set(VMID, vm)
  let waited = 0
  const onWait: (() => void)[] = []
  const clock = {
    now: () => Date.now() + waited,
    sleep: async (ms: number) => {
      waited += ms
      for (const act of onWait.splice(0)) act()
    },
  }
  const proxmox = createProxmox(parseSettings(emulator.env()), { clock })
  closers.push(() => proxmox.close())
  const target = {
    machineId,
    vmid: VMID,
    owner: 'lab',
    vmids: { first: 100_000, last: 100_999 },
    pool: 'jobs',
  }
  return {
    emulator,
    vm,
    waited: () => waited,
    /** At the next moment that somebody waits. */
    meanwhile: (act: () => void) => void onWait.push(act),
    destroy: () => destroyVm(proxmox, target, AbortSignal.timeout(30_000)),
    written: () => emulator.requests.filter(line => !line.startsWith('GET')),
  }
}

const ours = (machineId: string) => ({
  name: nameOf(machineId),
  tags: tagsOf('lab'),
  description: describeMachine({ machineId, owner: 'lab', createdAt: 1, tokenHash: 'a'.repeat(64) }),
})

describe('destroying a VM', () => {
  it('is left to the operator when its lock stays, in words that say what to do', async () => {
    const { destroy, emulator, waited } = await begin(id => ({ ...ours(id), lock: 'backup' }))
    const error = await destroy().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(AppError)
    expect(isOperatorError(error as AppError)).toBe(true)
    expect((error as AppError).message).toContain(`VM ${VMID} is locked`)
    expect((error as AppError).hint).toContain(`qm unlock ${VMID}`)
    expect(waited()).toBeLessThan(120_000)
    expect(emulator.state.vms.has(VMID)).toBe(true)
  })

  it('waits for a lock that goes', async () => {
    const { destroy, emulator, vm, meanwhile } = await begin(id => ({ ...ours(id), lock: 'backup' }))
    meanwhile(() => delete vm.config.lock)
    await destroy()
    expect(emulator.state.vms.has(VMID)).toBe(false)
  })

  it.each(['backup', 'migrate', 'clone'])(
    "never touches somebody else's that has the id, not even one that is locked (%s)",
    async lock => {
      const { destroy, emulator, vm, meanwhile, written } = await begin(() => ({
        name: 'database',
        description: 'precious',
        lock,
      }))
      meanwhile(() => delete vm.config.lock)
      await destroy()
      expect(written()).toEqual([])
      expect(emulator.state.vms.has(VMID)).toBe(true)
    },
  )

  it('waits until it can be told whose a clone is', async () => {
    const first = await begin(() => ({ lock: 'clone' }))
    first.meanwhile(() => {
      first.vm.config = { name: 'database', description: 'precious' }
    })
    await first.destroy()
    expect(first.written()).toEqual([])

    const never = await begin(() => ({ lock: 'clone' }))
    expect(await never.destroy().catch((error: AppError) => error.hint)).toContain(`qm unlock ${VMID}`)
    expect(never.written()).toEqual([])
  })
})
