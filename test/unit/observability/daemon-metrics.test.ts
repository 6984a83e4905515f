import { expect, it } from 'vitest'
import type { DaemonSummary } from '../../../src/engine/deputy.ts'
import { observeJobs } from '../../../src/observability/job-metrics.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { createMemoryDeputy } from '../../support/memory-deputy.ts'

const daemon = (name: string, state: string): DaemonSummary => ({
  ...{ daemon_id: name, name, host: name, version: '1', state, runtimes: {}, key_id: null, jobs: 0 },
  ...{ started_at: '2026-01-01T00:00:00Z', lease_until: '2026-01-01T00:00:00Z' },
})

it('counts the daemons of a fleet by state', async () => {
  const metrics = createMetrics()
  const daemons = async () => [daemon('a', 'up'), daemon('b', 'gone'), daemon('c', 'up')]
  const jobs = observeJobs(metrics, { ...createMemoryDeputy(), daemons })
  const text = await metrics.render()
  await jobs.close()
  expect(text).toContain('deputy_daemons{state="up"} 2\n')
  expect(text).toContain('deputy_daemons{state="gone"} 1\n')
})
