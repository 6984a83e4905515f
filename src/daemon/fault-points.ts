import { FAULT_POINTS, type FaultPoint } from '../engine/engine-context.ts'

/**
 * For crash tests: DEPUTY_FAULT_POINT names the step at which the daemon dies as if by `kill -9`. With `name:n`, it
 * dies when it reaches the step for the n-th time.
 */
export const parseFaultPoint = (text: string | undefined): ((point: FaultPoint) => void) => {
  const [name, times] = (text ?? '').split(':')
  if (!FAULT_POINTS.includes(name as FaultPoint)) return () => {}
  let left = Number(times ?? 1)
  return point => {
    if (point !== name) return
    left -= 1
    if (left === 0) process.kill(process.pid, 'SIGKILL')
  }
}
