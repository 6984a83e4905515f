import { onTestFinished } from 'vitest'
import type { JobView } from '../../src/engine/deputy.ts'
import { type TestEngine, until } from './engine.ts'
import { type Lab, type LabOptions, openLab } from './proxmox-provider.ts'

export const never = new AbortController().signal

/** A lab that ends with the test. */
export const useLab = async (options: LabOptions = {}): Promise<Lab> => {
  const lab = await openLab(options)
  onTestFinished(() => lab.close())
  return lab
}

/** The same, with an engine. */
export const begin = async (options: LabOptions = {}): Promise<{ lab: Lab; engine: TestEngine }> => {
  const lab = await useLab(options)
  return { lab, engine: await lab.open(lab.makeProvider()) }
}

/** A job in a VM, to its end. */
export const run = async (engine: TestEngine, manifest: Record<string, unknown>): Promise<JobView> => {
  const { job_id } = await engine.deputy.submit({ runtime: 'proxmox', ...manifest }, 'test')
  return engine.deputy.wait(job_id, { timeoutMs: 55_000, signal: never })
}

/** Nothing of ours is left on the cluster. */
export const clean = (lab: Lab): Promise<void> =>
  until(() => lab.machines().length === 0 && lab.seeds().length === 0, 'the cluster is clean', 30_000)
