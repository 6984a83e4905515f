import type { Composite } from '../row-context.ts'
import { item } from './values.ts'

/** The ACME settings are part of the configuration of the node. */
export const acmeConfig: Composite = async ({ node }, { call }) => {
  const config = item(await call('GET /nodes/{node}/config', { node }))
  return Object.fromEntries(Object.entries(config).filter(([key]) => key.startsWith('acme')))
}
