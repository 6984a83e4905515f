import type { Endpoint } from '../endpoints.ts'
import { ConnectFailure, type Transport } from '../https-transport.ts'
import type { Logger } from '../logger.ts'
import type { Version } from '../pve-version.ts'
import { readCache, writeCache } from './catalogue-cache.ts'
import type { Operation } from './catalogue-operation.ts'
import { checkCall, type Problem } from './check-call.ts'
import { extractSchema } from './extract-schema.ts'
import { normalise } from './normalise.ts'
import { createMatcher } from './operation-matcher.ts'
import { type SearchHit, searchOperations } from './search-operations.ts'

export interface Catalogue {
  /** `none` if the host does not serve its documentation. Then `check` finds no problems. */
  readonly source: 'host' | 'cache' | 'none'
  readonly version: string
  readonly operations: readonly Operation[]
  search(query: string, limit?: number): SearchHit[]
  /** The path may be a template (`/nodes/{node}/qemu`) or a real one (`/nodes/pve1/qemu`). */
  describe(verb: string, path: string): Operation | undefined
  check(verb: string, path: string, params: Readonly<Record<string, unknown>>): Problem[]
}

export interface LoadOptions {
  readonly endpoints: () => Endpoint[]
  readonly transport: Transport
  readonly version: Version
  readonly logger: Logger
  readonly cacheDir?: string
  readonly signal?: AbortSignal
}

const APIDOC = '/pve-docs/api-viewer/apidoc.js'

/** Loads the catalogue from the cache, or from the host, which serves the documentation of its own version. */
export const loadCatalogue = async (options: LoadOptions): Promise<Catalogue> => {
  const { cacheDir, logger, version } = options
  const cached = cacheDir === undefined ? undefined : await readCache(cacheDir, version)
  if (cached) return createCatalogue(cached, { source: 'cache', version: version.version })
  const operations = await download(options)
  if (operations === undefined) return createCatalogue([], { source: 'none', version: version.version })
  if (cacheDir !== undefined) {
    await writeCache(cacheDir, version, operations).catch(error =>
      logger.warn({ reason: (error as Error).message }, 'cannot cache the API catalogue of the host'),
    )
  }
  return createCatalogue(operations, { source: 'host', version: version.version })
}

export const createCatalogue = (
  operations: readonly Operation[],
  about: { source: Catalogue['source']; version: string },
): Catalogue => {
  const describe = createMatcher(operations)
  return {
    ...about,
    operations,
    describe,
    search: (query, limit) => searchOperations(operations, query, limit),
    check: (verb, path, params) =>
      operations.length === 0 ? [] : checkCall(describe, { verb, path, params }),
  }
}

const download = async ({
  endpoints,
  transport,
  logger,
  signal,
}: LoadOptions): Promise<Operation[] | undefined> => {
  for (const endpoint of endpoints()) {
    try {
      const response = await transport.send(endpoint, {
        method: 'GET',
        path: APIDOC,
        headers: { 'accept-encoding': 'gzip' },
        timeoutMs: 60_000,
        ...(signal ? { signal } : {}),
      })
      if (response.status === 200) return normalise(extractSchema(new TextDecoder().decode(response.body)))
      logger.info(
        { host: endpoint.host, status: response.status },
        'the host does not serve its API documentation',
      )
    } catch (error) {
      signal?.throwIfAborted()
      if (!(error instanceof ConnectFailure)) {
        logger.warn(
          { host: endpoint.host, reason: (error as Error).message },
          'cannot read the API documentation of the host',
        )
      }
    }
  }
  return undefined
}
