import { createResourceSeries, type ResourceSample } from '../../jobs/resource-series.ts'
import type { LocalMachine } from './local-machine.ts'
import { measureMemory } from './process-memory.ts'
import { cpuTimeOf } from './process-tree.ts'

const FIRST_PERIOD_MS = 250

export interface ResourceSampling {
  /**
   * Returns the series, with a last sample if the machine is still there. Call it when the command has ended. Empty when
   * that was too soon: what is left then tells nothing.
   */
  end(isAlive: boolean): readonly ResourceSample[]
}

/** Measures what the job in a machine uses: from its cgroup where it has one, else from its processes. */
export const sampleResources = (machine: LocalMachine): ResourceSampling => {
  const series = createResourceSeries(FIRST_PERIOD_MS)
  const begun = performance.now()
  // A kept machine, or one that was booted ahead, has used CPU time before.
  const before = measure(machine).cpuMs
  const sample = (): void => {
    const { cpuMs, memory } = measure(machine)
    series.add({ at: performance.now() - begun, cpuMs: Math.max(0, cpuMs - before), memory })
  }
  let timer: NodeJS.Timeout
  const next = (): void => {
    timer = setTimeout(() => {
      sample()
      next()
    }, series.periodMs)
    timer.unref()
  }
  next()
  return {
    end: isAlive => {
      clearTimeout(timer)
      if (isAlive && series.samples.length > 0) sample()
      return series.samples
    },
  }
}

const measure = (machine: LocalMachine): Pick<ResourceSample, 'cpuMs' | 'memory'> => {
  const { cgroup } = machine.plan
  const cpuMs = cgroup?.cpuMs()
  if (cgroup?.enforces.memory && cpuMs !== undefined) {
    // The files of a sandbox are in memory, too.
    const files = machine.diskUse()?.bytes ?? 0
    return { cpuMs, memory: Math.max(0, cgroup.unreclaimable() - files) }
  }
  const processes = machine.processes()
  return {
    cpuMs: cpuMs ?? cpuTimeOf(processes),
    memory: measureMemory(processes, Number.POSITIVE_INFINITY),
  }
}
