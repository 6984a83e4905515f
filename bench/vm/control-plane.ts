import { until } from '../../test/support/engine.ts'
import { openLab } from '../../test/support/proxmox-provider.ts'
import { type Bench, percentile } from '../figure.ts'
import { freeGuests } from './free-guests.ts'
import { rawStarts } from './raw-start.ts'

const ROUNDS = 6
const QUICK_ROUNDS = 3
const STARTS = 5
const never = new AbortController().signal

/** From submit to running, with tasks and guests that take no time: what is left is the daemon and its calls. */
const controlPlane: Bench['run'] = async quick => {
  const lab = await openLab({
    emulator: {
      timing: { cloneMs: 0, startMs: 0, stopMs: 0, taskMs: 0, statCacheMs: 0 },
      guests: freeGuests(),
      nodes: ['pve1'],
    },
  })
  try {
    const engine = await lab.open(lab.makeProvider())
    const times: number[] = []
    const start = async (): Promise<number> => {
      const { job_id } = await engine.deputy.submit({ task: 'true', runtime: 'proxmox' }, 'bench')
      const view = await engine.deputy.wait(job_id, { timeoutMs: 60_000, signal: never })
      if (view.status !== 'success') throw new Error(`a job ended as ${view.status}: ${view.error?.message}`)
      // What is being taken down must not slow what comes up.
      await until(() => lab.machines().length + lab.seeds().length === 0, 'the machine is gone', 60_000)
      return Date.parse(view.started_at ?? '') - Date.parse(view.created_at)
    }
    await start()
    await rawStarts(lab.emulator, 3)
    const floor: number[] = []
    let requests = 0
    // By turns, so that whatever else the computer does hits both.
    for (let round = 0; round < (quick ? QUICK_ROUNDS : ROUNDS); round++) {
      const before = lab.emulator.requests.length
      for (let i = 0; i < STARTS; i++) times.push(await start())
      requests += lab.emulator.requests.length - before
      floor.push(...(await rawStarts(lab.emulator, STARTS)))
    }
    return [
      {
        name: 'VM job: submit to running, p50, control plane alone',
        value: percentile(times, 0.5),
        unit: 'ms',
        floor: { name: 'the same calls, bare undici', value: percentile(floor, 0.5) },
        target: { of: 'ratio', at: 'most', limit: 4 },
      },
      { name: 'VM job: calls to the cluster, start to end', value: requests / times.length, unit: '' },
    ]
  } finally {
    await lab.close()
  }
}

export const controlPlaneBench: Bench = { name: 'vm-start', quick: true, run: controlPlane }
