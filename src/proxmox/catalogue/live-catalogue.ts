import { AppError } from '../../jobs/errors.ts'
import type { Clock } from '../clock.ts'
import type { Params } from '../encode.ts'
import type { Logger } from '../logger.ts'
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

/** A host that does not serve its documentation, or serves it broken, is not asked again sooner than that. */
const AGAIN_MS = 600_000
/** Hosts are upgraded while we run: a catalogue older than that is confirmed before it refuses anything. */
const FRESH_MS = 60_000

/**
 * Holds the catalogue of the host. No call waits for it or fails for want of it; what is at hand is used, and it
 * refuses only what the host, as it is now, would refuse.
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

  /** One at a time, for whoever asks; nobody's patience ends it for the others. */
  const fetch = (): Promise<Catalogue> => {
    loading ??= renew().finally(() => {
      loading = undefined
    })
    return loading
  }

  const isDue = (): boolean =>
    (current === undefined || current.catalogue.source === 'none') && clock.now() - triedAt >= AGAIN_MS

  /** Whatever a broken catalogue makes of a call says nothing about the call. */
  const errorsIn = ({ method, path }: Call, params: Params): Problem[] => {
    try {
      const problems = current?.catalogue.check(method, path, params) ?? []
      for (const { param, problem, severity } of problems)
        if (severity === 'unsure')
          logger.debug({ method, path, param, problem }, 'left to Proxmox VE to judge')
      return problems.filter(({ severity }) => severity === 'error')
    } catch (error) {
      logger.debug({ reason: (error as Error).message }, 'the catalogue of the host is of no use')
      current = undefined
      return []
    }
  }

  return {
    async get(signal?: AbortSignal): Promise<Catalogue> {
      if (current !== undefined && !isDue()) return current.catalogue
      return abortable(fetch(), signal)
    },
    /** Fetches it if need be, beside everything else. */
    refreshInBackground(): void {
      if (loading !== undefined || !isDue() || closing.signal.aborted) return
      fetch().catch(error =>
        logger.debug({ reason: (error as Error).message }, 'there is no catalogue of the host'),
      )
    },
    /** Throws what the host would say of the parameters of a call. */
    async verify(call: Call, params: Params, signal?: AbortSignal): Promise<void> {
      if (errorsIn(call, params).length === 0) return
      if (current !== undefined && clock.now() - current.confirmedAt >= FRESH_MS) {
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

const abortable = <T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> => {
  if (signal === undefined) return work
  signal.throwIfAborted()
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason)
    signal.addEventListener('abort', leave, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
  })
}

const refusal = ({ method, path }: Call, problems: readonly Problem[], { version }: Version): AppError => {
  const listed = problems.map(({ param, problem }) => `'${param}' ${problem}`)
  const errors = Object.fromEntries(problems.map(({ param = '', problem }) => [param, problem]))
  return new AppError('invalid', `${method} ${path} was not sent: ${listed.join('; ')}.`, {
    hint: `So says the catalogue of the host (Proxmox VE ${version}). Correct the parameters named above.`,
    details: { source: 'proxmox', kind: 'parameters', method, path, errors } satisfies ProxmoxDetails,
  })
}
