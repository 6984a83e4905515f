import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { openLab } from '../../test/support/proxmox-provider.ts'
import { type Bench, percentile } from '../figure.ts'

const JOBS = 200
const SLOTS = 20
/** For all of it, however busy the computer is. */
const BOUND_MS = 600_000

/** Many jobs through few slots of an emulated cluster, in guests that are processes; and nothing is left of them. */
const jobs: Bench['run'] = async () => {
  const bound = AbortSignal.timeout(BOUND_MS)
  setMaxListeners(0, bound)
  const lab = await openLab({
    emulator: { timing: { cloneMs: 1, startMs: 1, stopMs: 1, taskMs: 1 } },
    provider: {
      limit: SLOTS,
      vmids: { first: 100_000, last: 109_999 },
      parallel: { clones: 8, starts: 8, deletes: 8 },
    },
    engine: {
      config: config => {
        config.supervision.provisioning = BOUND_MS / 1000
      },
    },
  })
  try {
    const engine = await lab.open(lab.makeProvider())
    const began = performance.now()
    const submit = () => engine.deputy.submit({ task: 'true', runtime: 'proxmox', retries: 0 }, 'bench')
    const submitted = await Promise.all(Array.from({ length: JOBS }, submit))
    const views = await Promise.all(
      submitted.map(({ job_id }) => engine.deputy.wait(job_id, { timeoutMs: BOUND_MS, signal: bound })),
    )
    const seconds = (performance.now() - began) / 1000
    const walls = views.map(
      ({ phases = {} }) => (phases.provisioning ?? Number.NaN) + (phases.running ?? Number.NaN),
    )
    const left = async (): Promise<number> =>
      lab.machines().length + lab.seeds().length + (await engine.store.listMachines()).length
    while ((await left()) > 0 && !bound.aborted) await sleep(100)
    return [
      { name: `VM jobs: ${JOBS} through ${SLOTS} slots`, value: JOBS / seconds, unit: '/s' },
      { name: 'VM jobs: from its machine to its end, p50', value: percentile(walls, 0.5), unit: 'ms' },
      { name: 'VM jobs: from its machine to its end, p95', value: percentile(walls, 0.95), unit: 'ms' },
      {
        name: 'VM jobs: not successful',
        value: views.filter(({ status }) => status !== 'success').length,
        unit: '',
        target: { of: 'value', at: 'most', limit: 0 },
      },
      {
        name: 'VM jobs: machines, seeds and records left',
        value: await left(),
        unit: '',
        target: { of: 'value', at: 'most', limit: 0 },
      },
    ]
  } finally {
    await lab.close()
  }
}

export const vmJobsBench: Bench = { name: 'vm-jobs', run: jobs }
