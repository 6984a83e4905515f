import { isIP } from 'node:net'
import { abortable, createDeadline } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import { type AddressKind, type LocalNetworks, localNetworks, unusableKind } from './address-kinds.ts'
import { type NameService, systemNameServices } from './name-services.ts'

export interface AddressResolverOptions {
  ttlMs: number
  /** Kinds of addresses to accept although they are normally refused, for labs. */
  allow?: readonly AddressKind[]
  nameServices?: readonly NameService[]
  networks?: () => LocalNetworks
  now?: () => number
}

interface HostToResolve {
  /** The name or address from the configuration. */
  host: string
  fallback?: string | undefined
}

interface ResolvedAddress {
  address: string
  source: string
  /** A login at this address has succeeded before. */
  verified: boolean
}

export interface AddressResolver {
  resolve(query: HostToResolve, signal: AbortSignal): Promise<ResolvedAddress>
  /** A login succeeded: prefer the address until it fails or expires. */
  recordSuccess(host: string, address: string): void
  /** A login failed: prefer other addresses of the host for a while. */
  recordFailure(host: string, address: string): void
}

const LOOKUP_MS = 10_000

interface Entry {
  candidates: ResolvedAddress[]
  until: number
}

/** Resolves the address of a node: the last working address, then the name services in order, then the fallback. */
export const createAddressResolver = (options: AddressResolverOptions): AddressResolver => {
  const { ttlMs, nameServices = systemNameServices(), now = Date.now, networks = localNetworks } = options
  const entries = new Map<string, Entry>()
  const verified = new Map<string, string>()
  const failures = new Map<string, number>()
  const pending = new Map<string, Promise<Entry>>()
  const allowed = new Set<AddressKind>(options.allow)

  const failedRecently = (host: string, address: string): boolean =>
    (failures.get(`${host} ${address}`) ?? 0) > now()

  const lookUp = async (query: HostToResolve, signal: AbortSignal): Promise<Entry> => {
    const candidates: ResolvedAddress[] = []
    const refused: string[] = []
    const take = (address: string, source: string): void => {
      const kind = unusableKind(address, networks())
      if (kind !== undefined && !allowed.has(kind))
        refused.push(`${source} returned ${address}, which is ${LABELS[kind]}`)
      else if (!candidates.some(known => known.address === address)) {
        candidates.push({ address, source, verified: verified.get(query.host) === address })
      }
    }
    for (const service of nameServices) {
      if (!service.handles(query.host)) continue
      for (const address of await service.lookUp(query.host, signal).catch(() => []))
        take(address, service.name)
      signal.throwIfAborted()
      if (candidates.length > 0) break
    }
    if (query.fallback !== undefined) {
      const kind = isIP(query.fallback) === 0 ? undefined : unusableKind(query.fallback, networks())
      // The user may name a bridge on purpose. A loopback address would run the command on this computer instead.
      if (kind === undefined || kind === 'container-bridge' || allowed.has(kind))
        candidates.push({ address: query.fallback, source: 'fallback', verified: false })
      else refused.push(`the fallback is ${query.fallback}, which is ${LABELS[kind]}`)
    }
    if (candidates.length === 0) throw noAddress(query.host, refused)
    return { candidates, until: now() + ttlMs }
  }

  const entryFor = (query: HostToResolve): Promise<Entry> => {
    const key = `${query.host} ${query.fallback ?? ''}`
    const known = entries.get(key)
    if (known && known.until > now()) return Promise.resolve(known)
    const current = pending.get(key)
    if (current) return current
    // All callers share the lookup, so it has its own timeout and ignores their signals.
    const deadline = createDeadline([], LOOKUP_MS)
    const lookup = lookUp(query, deadline.signal)
      .then(entry => {
        entries.set(key, entry)
        return entry
      })
      .catch((error: unknown) => {
        throw deadline.expired ? lookupTimedOut(query.host) : error
      })
      .finally(() => {
        deadline.clear()
        pending.delete(key)
      })
    pending.set(key, lookup)
    return lookup
  }

  return {
    resolve: async (query, signal) => {
      // The user chose this address: accept every kind that a machine can have.
      if (isIP(query.host) !== 0)
        return {
          address: checkedLiteral(query.host, networks()),
          source: 'configuration',
          verified: verified.has(query.host),
        }
      const { candidates } = await abortable(entryFor(query), signal)
      const known = verified.get(query.host)
      const rank = (candidate: ResolvedAddress): number =>
        (candidate.address === known ? -2 : 0) + (failedRecently(query.host, candidate.address) ? 1 : 0)
      const best = candidates.reduce((a, b) => (rank(b) < rank(a) ? b : a))
      return { ...best, verified: best.address === known }
    },
    recordSuccess: (host, address) => {
      verified.set(host, address)
      failures.delete(`${host} ${address}`)
    },
    recordFailure: (host, address) => {
      if (verified.get(host) === address) verified.delete(host)
      failures.set(`${host} ${address}`, now() + Math.max(ttlMs, 10_000))
    },
  }
}

const checkedLiteral = (address: string, networks: LocalNetworks): string => {
  const kind = unusableKind(address, networks)
  if (kind === 'unspecified' || kind === 'multicast' || kind === 'broadcast') {
    throw new AppError('invalid', `Invalid node address ${address}: it is ${LABELS[kind]}.`)
  }
  return address
}

const lookupTimedOut = (host: string): AppError =>
  new AppError('unavailable', `Looking up '${host}' took longer than ${LOOKUP_MS / 1000} s.`, {
    hint: 'Set a fallback address for the node, or add its name to /etc/hosts.',
    details: { failure: 'unresolved' },
  })

const LABELS: Record<AddressKind, string> = {
  loopback: 'this computer itself',
  'link-local': 'a link-local address',
  multicast: 'a multicast address',
  unspecified: 'the unspecified address',
  broadcast: 'a broadcast address',
  'container-bridge': 'a container bridge',
  'not-an-address': 'not an address',
}

const noAddress = (host: string, refused: readonly string[]): AppError =>
  new AppError(
    'unavailable',
    `No usable address for '${host}'${refused.length > 0 ? `: ${refused.join('; ')}` : ''}`,
    {
      hint: `Set a fallback address for the node, or add ${host} to DNS or /etc/hosts. In a lab, set cluster.addresses.allow.`,
      details: { failure: 'unresolved' },
    },
  )
