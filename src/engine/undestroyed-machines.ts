import type { Check, MachineRecord, Readiness } from '../ports.ts'

/** Adds a warning to doctor's report for each machine that could not be destroyed. Such machines do not block jobs. */
export const withUndestroyedMachines = (
  readiness: Readiness,
  machines: readonly MachineRecord[],
): Readiness => {
  const left = machines.filter(
    ({ runtime, state, lastError }) =>
      runtime === readiness.runtime && state === 'destroying' && lastError !== null,
  )
  return { ...readiness, checks: [...readiness.checks, ...left.map(toCheck)] }
}

const toCheck = ({ id, lastError }: MachineRecord): Check => ({
  name: 'machine',
  status: 'warning',
  message: `machine ${id} could not be destroyed: ${lastError}`,
  fix: `deputy machines rm ${id}`,
})
