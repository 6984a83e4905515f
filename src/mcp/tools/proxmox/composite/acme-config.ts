import type { Composite } from '../row-context.ts'
import { item } from './values.ts'

/** What a node orders certificates for is in its configuration, among other things. */
export const acmeConfig: Composite = async ({ node }, { call }) => {
  const config = item(await call('GET /nodes/{node}/config', { node }))
  return Object.fromEntries(Object.entries(config).filter(([key]) => key.startsWith('acme')))
}
