import type { JobView } from '../src/engine/deputy.ts'
import type { Manifest } from '../src/jobs/manifest.ts'
import { deputy } from './deputy.ts'

/** The manifest of a job without its idempotency key, which would return the old job instead of a new one. */
export const manifestOf = async (id: string): Promise<Omit<Manifest, 'idempotency_key'>> => {
  const { idempotency_key, ...manifest } = await deputy.manifest(id)
  return manifest
}

export const runAgain = async (id: string): Promise<JobView> => deputy.submit(await manifestOf(id))
