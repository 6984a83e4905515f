import { openLab } from '../test/support/proxmox-runtime.ts'
import { callbacksBench } from './callbacks/bench.ts'
import { type Bench, percentile } from './figure.ts'

const JOBS = 200
const SLOTS = 20
const COLD = 10
const never = new AbortController().signal

/** The control plane alone: an emulated cluster whose tasks take no time, and guests that are processes. */
const jobs: Bench['run'] = async () => {
  const quick = { cloneMs: 1, startMs: 1, stopMs: 1, taskMs: 1 }
  const lab = await openLab({
    emulator: { timing: quick },
    runtime: {
      limit: SLOTS,
      vmids: { first: 100_000, last: 109_999 },
      parallel: { clones: 8, starts: 8, deletes: 8 },
    },
  })
  try {
    const engine = await lab.open(lab.makeRuntime())
    const started: number[] = []
    for (let i = 0; i < COLD; i++) {
      const { job_id } = await engine.deputy.submit({ task: 'true', runtime: 'proxmox' }, 'bench')
      const view = await engine.deputy.wait(job_id, { timeoutMs: 60_000, signal: never })
      if (view.status !== 'success') throw new Error(`a job ended as ${view.status}: ${view.error?.message}`)
      started.push(view.phases?.provisioning ?? Number.NaN)
    }
    const began = performance.now()
    const submitted = await Promise.all(
      Array.from({ length: JOBS }, () => engine.deputy.submit({ task: 'true', runtime: 'proxmox' }, 'bench')),
    )
    let failed = 0
    for (const { job_id } of submitted) {
      const view = await engine.deputy.wait(job_id, { timeoutMs: 600_000, signal: never })
      if (view.status !== 'success') failed++
    }
    const seconds = (performance.now() - began) / 1000
    const end = performance.now() + 60_000
    while ((lab.machines().length > 0 || lab.seeds().length > 0) && performance.now() < end)
      await new Promise(resolve => setTimeout(resolve, 100))
    return [
      { name: 'VM job: submit to running, p50', value: percentile(started, 0.5), unit: 'ms' },
      { name: `VM jobs: ${JOBS} through ${SLOTS} slots`, value: JOBS / seconds, unit: '/s' },
      { name: 'VM jobs: failed', value: failed, unit: '', target: { of: 'value', at: 'most', limit: 0 } },
      {
        name: 'VM jobs: machines and seeds left',
        value: lab.machines().length + lab.seeds().length,
        unit: '',
        target: { of: 'value', at: 'most', limit: 0 },
      },
    ]
  } finally {
    await lab.close()
  }
}

export const machineBenches: Bench[] = [callbacksBench, { name: 'vm-jobs', run: jobs }]
