import type { Metrics } from './metrics.ts'

/** Metrics of the daemon process, under their conventional Prometheus names. */
export const observeProcess = (metrics: Metrics, version: string): void => {
  metrics.gauge('deputy_build_info', 'Version of the running daemon.', () => [
    { labels: { version }, value: 1 },
  ])
  metrics.gauge('process_resident_memory_bytes', 'Resident memory.', () => [
    { value: process.memoryUsage.rss() },
  ])
  metrics.gauge('process_start_time_seconds', 'Start time of the process.', () => [
    { value: Math.round(performance.timeOrigin / 1000) },
  ])
  metrics.total('process_cpu_seconds_total', 'Processor time used.', () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  })
}
