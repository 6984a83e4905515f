import { afterEach, describe, expect, it } from 'vitest'
import { newId } from '../../../src/jobs/ids.ts'
import type { Job } from '../../../src/jobs/job.ts'
import { parseManifest } from '../../../src/jobs/manifest.ts'
import type { AttachRequest, Outcome, StopReason } from '../../../src/ports.ts'
import { type FollowVmJobOptions, followVmJob } from '../../../src/providers/proxmox/follow-vm-job.ts'
import { createGuestSessions } from '../../../src/providers/proxmox/guest-sessions.ts'
import { describe as describeMachine, nameOf } from '../../../src/providers/proxmox/identity.ts'
import type { Details, Finished } from '../../../src/providers/proxmox/vm-details.ts'
import { createProxmox } from '../../../src/proxmox/proxmox-client.ts'
import { systemClock } from '../../../src/proxmox/proxmox-clock.ts'
import { parseSettings } from '../../../src/proxmox/proxmox-settings.ts'
import { until } from '../../support/engine.ts'
import { startEmulator } from '../../support/pve/emulator.ts'
import { newVm } from '../../support/pve/state.ts'

const VMID = 100_007
const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** A VM that runs on an emulated cluster, and a job in it of which nothing is heard. */
const begin = async ({
  started = true,
  lookMs = 0,
  graceSeconds = 0,
  heartbeatSeconds = 1,
  stopped = undefined as StopReason | undefined,
} = {}) => {
  const emulator = await startEmulator()
  closers.push(() => emulator.close())
  const id = newId()
  const tokenHash = 'a'.repeat(64)
  const vm = newVm(VMID, 'pve1', {
    name: nameOf(id),
    tags: 'deputy;deputy-lab',
    description: describeMachine({ machineId: id, owner: 'lab', createdAt: 1, tokenHash }),
  })
  vm.pool = 'jobs'
  vm.status = 'running'
  emulator.state.vms.set(VMID, vm)
  if (lookMs > 0) emulator.faults.addRequest({ match: '/status/current', times: 1, delayMs: lookMs })
  let ahead = 0
  const clock = { ...systemClock, now: () => Date.now() + ahead }
  const proxmox = createProxmox(parseSettings(emulator.env()), { clock })
  closers.push(() => proxmox.close())
  const warnings: string[] = []
  const log = {
    debug: () => {},
    info: () => {},
    error: () => {},
    warn: (_: object, text: string) => void warnings.push(text),
  }
  const sessions = createGuestSessions(() => Date.now())
  const stop = new AbortController()
  if (stopped) stop.abort(stopped)
  const detach = new AbortController()
  const run: AttachRequest = {
    job: { id, timeoutSeconds: 60 } as Job,
    manifest: parseManifest({ task: 'x' }),
    machine: { id, runtime: 'proxmox', jobId: id, details: {} },
    sink: { position: 0, started: async () => {}, write: async () => {}, heartbeat: () => {} },
    stop: stop.signal,
    detach: detach.signal,
    remember: async () => {},
  }
  const state: FollowVmJobOptions['state'] = {
    startedAt: started ? 1000 : undefined,
    finished: undefined,
    refused: undefined,
    stopSentAt: undefined,
    lastFileAt: undefined,
  }
  let present = true
  const moves: string[] = []
  const outcome = followVmJob({
    provider: {
      ...{ proxmox, log, graceSeconds, heartbeatSeconds, owner: 'lab', pool: 'jobs' },
      channel: 'callback',
      vmids: { first: 100_000, last: 100_999 },
    },
    sessions,
    reaches: new Map(),
    run,
    details: { node: 'pve1', vmid: VMID } as Details,
    outputReceiver: {
      position: 0,
      sawNoSpace: false,
      take: async () => 0,
      takeText: async () => {},
      end: async () => {},
      redact: text => text,
      agent: () => ({ usage: null, error: null }),
    },
    state,
    phases: { clone: 5 },
    present: () => present,
    moved: async node => void moves.push(node),
    collected: () => ({ artifacts: [], skipped: [], patch: null }),
  })
  let settled: Outcome | undefined
  void outcome.then(ended => {
    settled = ended
  })
  return {
    emulator,
    vm,
    warnings,
    moves,
    outcome,
    settled: () => settled,
    asked: (what: string) => emulator.requests.filter(line => line.includes(what)).length,
    finish: (code: number) => {
      const report = { code, signal: 0, ended: '' as const }
      const finished: Finished = {
        ...{ jobId: id, report, endedAt: 3000 },
        ...{ artifacts: [], skipped: [], patch: null },
      }
      state.finished = finished
      sessions.notify(id)
    },
    vanish: () => {
      present = false
      sessions.notify(id)
    },
    stop: (reason: StopReason) => stop.abort(reason),
    hear: () => {
      state.stopSentAt = clock.now()
    },
    /** Something of its files has come. */
    send: () => {
      state.lastFileAt = clock.now()
    },
    /** So much time is over; what there is to do about it is under way. */
    pass: async (seconds: number) => {
      ahead += seconds * 1000
      sessions.notify(id)
      await new Promise(resolve => setTimeout(resolve, 50))
    },
    detach: () => detach.abort(),
  }
}

const NO_CONFIG = `Configuration file 'nodes/pve1/qemu-server/${VMID}.conf' does not exist`
const NOT_OURS_TO_SEE = ['VM.Audit', 'VM.PowerMgmt'] as const

describe('a job in a machine that is not heard of', () => {
  it('goes on when the right to look at the machine is gone, and ends by its own word', async () => {
    const job = await begin()
    for (const right of NOT_OURS_TO_SEE) job.emulator.state.roles.get('DeputyJobs')!.delete(right)
    job.vanish()
    await until(() => job.asked('/cluster/nextid') > 0, 'it was asked whether the id is free')
    expect(job.settled()).toBeUndefined()
    job.finish(4)
    expect(await job.outcome).toMatchObject({
      kind: 'exit',
      exit: { code: 4, stopped: null, startedAt: 1000, phases: { clone: 5, run: 2000 } },
    })
  })

  it('is lost when the machine is gone, and with it every right to it', async () => {
    const job = await begin()
    job.emulator.state.vms.delete(VMID)
    job.vanish()
    expect(await job.outcome).toMatchObject({
      kind: 'lost',
      error: { message: `VM ${VMID} does not exist any more.` },
    })
  })

  it('may be tried again when its machine went before the command had started', async () => {
    const job = await begin({ started: false })
    await new Promise(resolve => setImmediate(resolve))
    job.emulator.state.vms.delete(VMID)
    job.vanish()
    expect(await job.outcome).toMatchObject({ kind: 'not-started', error: { retryable: true } })
  })

  it('is tried again when a machine took the order and fell silent', async () => {
    const job = await begin({ started: false })
    await job.pass(500)
    expect(job.settled()).toBeUndefined()
    await job.pass(101)
    expect(await job.outcome).toMatchObject({
      kind: 'not-started',
      error: { retryable: true, message: expect.stringContaining('not heard of any more') },
    })
  })

  it('is lost when the machine was switched off', async () => {
    const job = await begin()
    job.vm.status = 'stopped'
    job.vanish()
    expect(await job.outcome).toMatchObject({
      kind: 'lost',
      error: { message: expect.stringContaining('switched off') },
    })
  })

  it('goes on when the token is refused, and says so', async () => {
    const job = await begin()
    job.emulator.revokeToken()
    job.vanish()
    await until(() => job.warnings.length > 0, 'the operator is told', 15_000)
    expect(job.warnings[0]).toContain('token is refused')
    expect(job.settled()).toBeUndefined()
    job.finish(0)
    expect(await job.outcome).toMatchObject({ kind: 'exit', exit: { code: 0 } })
  })

  it('goes on while the cluster does not answer', async () => {
    const job = await begin()
    job.emulator.faults.addRequest({ match: '/status/current', times: 50, drop: 'before' })
    job.vanish()
    await until(() => job.asked('/status/current') > 1, 'it was looked for in vain', 20_000)
    expect(job.settled()).toBeUndefined()
    job.detach()
    expect(await job.outcome).toEqual({ kind: 'detached' })
  })

  it('ends at once, also when its last word comes while it is looked at', async () => {
    const job = await begin({ lookMs: 500 })
    await until(() => job.asked('/status/current') > 0, 'it is looked at')
    const began = performance.now()
    job.finish(0)
    expect(await job.outcome).toMatchObject({ kind: 'exit' })
    expect(performance.now() - began).toBeLessThan(20_000)
  })

  it('goes on when its machine is moved to another node, and is followed there', async () => {
    const job = await begin()
    job.vm.node = 'pve2'
    job.vanish()
    await until(() => job.moves.length > 0, 'the move is noticed', 20_000)
    expect(job.moves).toEqual(['pve2'])
    expect(job.settled()).toBeUndefined()
    job.finish(0)
    expect(await job.outcome).toMatchObject({ kind: 'exit', exit: { code: 0 } })
  })

  it('goes on when its machine is moved away from a node that is gone', async () => {
    const job = await begin()
    job.vm.node = 'pve2'
    job.emulator.state.nodes.delete('pve1')
    job.vanish()
    await until(() => job.moves.length > 0, 'the move is noticed', 20_000)
    expect(job.settled()).toBeUndefined()
    job.detach()
    await job.outcome
  })

  it('is not lost because the list of guests was empty for a moment', async () => {
    const job = await begin()
    job.emulator.faults.addRequest({ match: '/status/current', times: 1, status: 500, message: NO_CONFIG })
    job.emulator.faults.addRequest({ match: '/cluster/nextid', times: 1, status: 200, message: '' })
    job.vanish()
    await until(() => job.asked('/cluster/nextid') > 1, 'it was asked twice', 20_000)
    expect(job.settled()).toBeUndefined()
    job.detach()
    expect(await job.outcome).toEqual({ kind: 'detached' })
  })

  it('is cut off soon when its machine does not hear that it is cancelled', async () => {
    const job = await begin()
    job.stop({ kind: 'cancel', by: 'the user' })
    await job.pass(2)
    expect(job.vm.status).toBe('running')
    await job.pass(3)
    expect(await job.outcome).toMatchObject({ kind: 'exit', exit: { stopped: 'cancel', signal: 'SIGKILL' } })
    expect(job.vm.status).toBe('stopped')
  })

  it('is not cut off when one heartbeat of its machine is lost', async () => {
    const job = await begin({ heartbeatSeconds: 6 })
    await until(() => job.asked('/status/current') > 0, 'it is looked at')
    job.stop({ kind: 'cancel', by: 'the user' })
    await job.pass(10)
    await until(() => job.asked('/status/current') > 1, 'it is looked at again')
    expect(job.asked('/status/stop')).toBe(0)
    await job.pass(5)
    expect(await job.outcome).toMatchObject({ kind: 'exit', exit: { stopped: 'cancel' } })
  })

  it('has its grace, and time for last words, once its machine has heard', async () => {
    const job = await begin({ graceSeconds: 5 })
    job.stop({ kind: 'cancel', by: 'the user' })
    await job.pass(3)
    job.hear()
    await job.pass(15)
    expect(job.settled()).toBeUndefined()
    expect(job.vm.status).toBe('running')
    await job.pass(6)
    expect(await job.outcome).toMatchObject({ kind: 'exit', exit: { stopped: 'cancel' } })
  })

  it('brings its files when its time is over, as long as they come, and no longer than 40 s', async () => {
    const job = await begin({ stopped: { kind: 'timeout', by: 'daemon' } })
    await until(() => job.asked('/status/current') > 0, 'it is looked at')
    for (let seconds = 10; seconds <= 50; seconds += 10) {
      const looks = job.asked('/status/current')
      await job.pass(10)
      await until(() => job.asked('/status/current') > looks, 'it is looked at again')
      job.send()
      expect(job.asked('/status/stop'), `${seconds} s`).toBe(0)
    }
    await job.pass(6)
    await until(() => job.asked('/status/stop') > 0, 'it is cut off')
    expect(await job.outcome).toMatchObject({ kind: 'exit', exit: { stopped: 'timeout' } })
    expect(job.vm.status).toBe('stopped')
  })

  it('does not wait for files that come no more when its time is over', async () => {
    const job = await begin({ stopped: { kind: 'timeout', by: 'daemon' } })
    await job.pass(10)
    job.send()
    await job.pass(12)
    expect(job.asked('/status/stop')).toBe(0)
    await job.pass(4)
    await until(() => job.asked('/status/stop') > 0, 'it is cut off')
    expect(await job.outcome).toMatchObject({ kind: 'exit', exit: { stopped: 'timeout' } })
  })

  it('does not wait for files when it is cancelled', async () => {
    const job = await begin()
    job.stop({ kind: 'cancel', by: 'the user' })
    job.send()
    await job.pass(5)
    expect(await job.outcome).toMatchObject({ kind: 'exit', exit: { stopped: 'cancel' } })
  })

  it('that is given up does not switch off somebody else who has the id now', async () => {
    const job = await begin()
    job.vm.config = { name: 'precious', description: 'of somebody else' }
    job.stop({ kind: 'stale', by: 'daemon' })
    expect(await job.outcome).toMatchObject({ kind: 'exit', exit: { stopped: 'stale' } })
    expect(job.vm.status).toBe('running')
  })

  it('is cut off at once when it was given up, and keeps the reason', async () => {
    const job = await begin()
    job.stop({ kind: 'stale', by: 'daemon' })
    expect(await job.outcome).toMatchObject({
      kind: 'exit',
      exit: { stopped: 'stale', signal: 'SIGKILL', code: 137 },
    })
    expect(job.vm.status).toBe('stopped')
  })
})
