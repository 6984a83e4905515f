import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestEngine, until } from '../../test/support/engine.ts'
import { freePort } from '../../test/support/free-port.ts'
import { openLab } from '../../test/support/proxmox-provider.ts'
import { qemuGuests } from '../../test/support/pve/guests/qemu/index.ts'
import { CALLBACK, findImage } from '../../test/support/vm.ts'
import { type Bench, percentile } from '../figure.ts'

const CLAIMS = 3
const BOUND_MS = 900_000

/** Machines that boot for real: how long until a job's first byte, from nothing and from a machine that waits. */
const warm: Bench['run'] = async () => {
  const { image, missing } = findImage()
  if (image === undefined) {
    process.stderr.write(`vm-warm is left out: ${missing}\n`)
    return []
  }
  const bound = AbortSignal.timeout(BOUND_MS)
  const directory = mkdtempSync(join(tmpdir(), 'vm-'))
  const port = await freePort()
  const passages = [{ guest: CALLBACK, target: { host: '127.0.0.1', port } }]
  const lab = await openLab({ emulator: { guests: qemuGuests({ image, directory, passages }) } })
  const options = {
    callback: { host: '127.0.0.1', port, url: `http://${CALLBACK.host}:${CALLBACK.port}` },
    defaults: { cpu: 1, memory: 2 ** 29, disk: undefined },
    heartbeatSeconds: 5,
  }
  try {
    const engine = await lab.open(lab.makeProvider(options), generous)
    const cold = await firstByte(engine, bound)
    await engine.close()
    const pooled = await lab.open(lab.makeProvider({ ...options, poolSize: 1 }), generous)
    const times: number[] = []
    for (let i = 0; i < CLAIMS; i++) {
      await until(() => oneWaits(pooled), 'a machine waits', BOUND_MS)
      times.push(await firstByte(pooled, bound))
    }
    return [
      {
        name: 'warm machine: claim to first byte, p50',
        value: percentile(times, 0.5),
        unit: 'ms',
        floor: { name: 'cold start', value: cold },
        target: { of: 'value', at: 'most', limit: 1000 },
      },
      { name: 'warm machine: claim to first byte, slowest', value: percentile(times, 1), unit: 'ms' },
    ]
  } finally {
    await lab.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

const generous: Parameters<Awaited<ReturnType<typeof openLab>>['open']>[1] = {
  config: config => {
    config.supervision.provisioning = 300
  },
}

/** Ready, and nothing else boots: a machine in the making takes the processor of the one that is measured. */
const oneWaits = async ({ store }: TestEngine): Promise<boolean> => {
  const machines = await store.listMachines()
  return machines.length === 1 && machines[0]!.state === 'ready'
}

const firstByte = async ({ deputy, store }: TestEngine, signal: AbortSignal): Promise<number> => {
  const began = Date.now()
  const { job_id } = await deputy.submit({ task: 'echo here', runtime: 'proxmox', retries: 0 }, 'bench')
  const view = await deputy.wait(job_id, { timeoutMs: BOUND_MS, signal })
  const [first] = await store.readOutput(job_id, 0, 10)
  if (first === undefined) throw new Error(`a job ended as ${view.status}: ${view.error?.message}`)
  return first.at - began
}

export const warmBench: Bench = { name: 'vm-warm', run: warm }
