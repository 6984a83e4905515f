import type { JobView } from '../src/engine/deputy.ts'
import type { Manifest } from '../src/jobs/manifest.ts'
import { askJson } from './api.ts'

/** The manifest of a job without its idempotency key, which would return the old job instead of a new one. */
export const manifestOf = async (id: string): Promise<Omit<Manifest, 'idempotency_key'>> => {
  const { idempotency_key, ...manifest } = await askJson<Manifest>(`/api/jobs/${id}/manifest`)
  return manifest
}

export const runAgain = async (id: string): Promise<JobView> =>
  askJson<JobView>('/api/jobs', { method: 'POST', body: await manifestOf(id) })
