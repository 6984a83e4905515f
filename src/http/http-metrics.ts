import type { Metrics } from '../observability/metrics.ts'
import type { Route } from './route.ts'

/** Counts requests by route, not by path, so that a scanner cannot create endless series. */
export const createHttpMetrics = (metrics: Metrics) => {
  const requests = metrics.counter('deputy_http_requests_total', 'Requests by route and class of status.')
  const seconds = metrics.histogram(
    'deputy_http_request_seconds',
    'Time to the response; for streams, to its start.',
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 60],
  )
  return ({ method, path }: Route) => {
    const labels = { method, route: path }
    const byClass = [1, 2, 3, 4, 5].map(first => ({ ...labels, status: `${first}xx` }))
    return (status: number, ms: number): void => {
      requests.add(byClass[Math.floor(status / 100) - 1])
      seconds.observe(ms / 1000, labels)
    }
  }
}
