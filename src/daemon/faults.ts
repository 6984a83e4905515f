import { FAULT_POINTS, type FaultPoint } from '../engine/context.ts'

/**
 * For the crash tests: DEPUTY_FAULT_POINT names the step at which this daemon dies as by `kill -9`. The n-th time
 * it passes there, with `name:n`.
 */
export const faultsFrom = (text: string | undefined): ((point: FaultPoint) => void) => {
  const [name, times] = (text ?? '').split(':')
  if (!FAULT_POINTS.includes(name as FaultPoint)) return () => {}
  let left = Number(times ?? 1)
  return point => {
    if (point !== name) return
    left -= 1
    if (left === 0) process.kill(process.pid, 'SIGKILL')
  }
}
