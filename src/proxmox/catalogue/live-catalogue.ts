import { abortable } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import type { Params } from '../encode.ts'
import type { Logger } from '../logger.ts'
import type { Clock } from '../proxmox-clock.ts'
import type { Call, ProxmoxDetails } from '../proxmox-errors.ts'
import type { Version } from '../pve-version.ts'
import type { Problem } from './check-call.ts'
import type { Catalogue } from './load-catalogue.ts'

export interface LiveCatalogueOptions {
  readonly clock: Clock
  readonly logger: Logger
  version(signal: AbortSignal): Promise<Version>
  load(version: Version, signal: AbortSignal): Promise<Catalogue>
}

/** Pause before the next attempt, if the host does not serve its documentation or serves it broken. */
const RETRY_PAUSE_MS = 600_000
/** A host can be upgraded while the daemon runs: an older catalogue is confirmed before it refuses a call. */
const FRESH_MS = 60_000

/**
 * Keeps the API catalogue of the host up to date. Calls do not wait for it and do not fail without it. It refuses only
 * calls that the current version of the host would refuse.
 */
export const createLiveCatalogue = ({ clock, logger, version, load }: LiveCatalogueOptions) => {
  const closing = new AbortController()
  let current: { catalogue: Catalogue; version: Version; confirmedAt: number } | undefined
  let loading: Promise<Catalogue> | undefined
  let triedAt = Number.NEGATIVE_INFINITY

  const renew = async (): Promise<Catalogue> => {
    triedAt = clock.now()
    const now = await version(closing.signal)
    const known = current?.version.version === now.version && current.version.repoid === now.repoid
    const catalogue =
      known && current!.catalogue.source !== 'none' ? current!.catalogue : await load(now, closing.signal)
    current = { catalogue, version: now, confirmedAt: clock.now() }
    return catalogue
  }

  /** Callers share one download, so the signal of a single caller does not abort it. */
  const fetch = (): Promise<Catalogue> => {
    loading ??= renew().finally(() => {
      loading = undefined
    })
    return loading
  }

  const isDue = (): boolean =>
    (current === undefined || current.catalogue.source === 'none') && clock.now() - triedAt >= RETRY_PAUSE_MS

  /** Ignores errors of the check itself: a broken catalogue must not refuse calls. */
  const errorsIn = ({ method, path }: Call, params: Params): Problem[] => {
    try {
      const problems = current?.catalogue.check(method, path, params) ?? []
      for (const { param, problem, severity } of problems)
        if (severity === 'unsure')
          logger.debug({ method, path, param, problem }, 'possible problem, left to Proxmox VE to check')
      return problems.filter(({ severity }) => severity === 'error')
    } catch (error) {
      logger.debug({ reason: (error as Error).message }, 'cannot use the API catalogue of the host')
      current = undefined
      return []
    }
  }

  return {
    async get(signal?: AbortSignal): Promise<Catalogue> {
      if (current !== undefined && !isDue()) return current.catalogue
      return abortable(fetch(), signal)
    },
    /** Fetches the catalogue in the background if it is missing. */
    refreshInBackground(): void {
      if (loading !== undefined || !isDue() || closing.signal.aborted) return
      fetch().catch(error =>
        logger.debug({ reason: (error as Error).message }, 'cannot fetch the API catalogue of the host'),
      )
    },
    /** Throws if the host would refuse the parameters of the call. */
    async verify(call: Call, params: Params, signal?: AbortSignal): Promise<void> {
      if (errorsIn(call, params).length === 0) return
      if (current !== undefined && clock.now() - current.confirmedAt >= FRESH_MS) {
        // If the host does not answer, its last known schema decides.
        const confirmed = await abortable(fetch(), signal).catch(() => undefined)
        signal?.throwIfAborted()
        if (confirmed === undefined) return
      }
      const errors = errorsIn(call, params)
      if (errors.length > 0) throw refusal(call, errors, current!.version)
    },
    close: (): void => closing.abort(new AppError('unavailable', 'The Proxmox VE client is closed.')),
  }
}

const refusal = ({ method, path }: Call, problems: readonly Problem[], { version }: Version): AppError => {
  const listed = problems.map(({ param, problem }) => `'${param}' ${problem}`)
  const errors = Object.fromEntries(problems.map(({ param = '', problem }) => [param, problem]))
  return new AppError('invalid', `${method} ${path} was not sent: ${listed.join('; ')}.`, {
    hint: `Correct the parameters named above. They were checked against the API catalogue of the host (Proxmox VE ${version}).`,
    details: { source: 'proxmox', kind: 'parameters', method, path, errors } satisfies ProxmoxDetails,
  })
}
