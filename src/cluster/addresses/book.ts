import { isIP } from 'node:net'
import { abortable, createDeadline } from '../../jobs/deadline.ts'
import { AppError } from '../../jobs/errors.ts'
import { type AddressKind, type LocalNetworks, localNetworks, unusableKind } from './kinds.ts'
import { type NamedSource, systemSources } from './sources.ts'

export interface AddressBookOptions {
  ttlMs: number
  /** Kinds that are fine here, for labs. */
  allow?: readonly AddressKind[]
  sources?: readonly NamedSource[]
  networks?: () => LocalNetworks
  now?: () => number
}

export interface Place {
  /** As the user wrote it. */
  host: string
  fallback?: string | undefined
}

export interface ResolvedAddress {
  address: string
  source: string
  /** A login worked there before. */
  verified: boolean
}

export interface AddressBook {
  resolve(place: Place, signal: AbortSignal): Promise<ResolvedAddress>
  /** A login worked: the address is kept for the host until it fails or ages. */
  verified(host: string, address: string): void
  /** It did not: others come first next time. */
  failed(host: string, address: string): void
}

const LOOKUP_MS = 10_000

interface Entry {
  candidates: ResolvedAddress[]
  until: number
}

/** Finds where a node is: what worked before, then the name services in order, then the fallback address. */
export const createAddressBook = (options: AddressBookOptions): AddressBook => {
  const { ttlMs, sources = systemSources(), now = Date.now, networks = localNetworks } = options
  const entries = new Map<string, Entry>()
  const verified = new Map<string, string>()
  const suspects = new Map<string, number>()
  const pending = new Map<string, Promise<Entry>>()
  const allowed = new Set<AddressKind>(options.allow)

  const isSuspect = (host: string, address: string): boolean =>
    (suspects.get(`${host} ${address}`) ?? 0) > now()

  const lookUp = async (place: Place, signal: AbortSignal): Promise<Entry> => {
    const candidates: ResolvedAddress[] = []
    const refused: string[] = []
    const take = (address: string, source: string): void => {
      const kind = unusableKind(address, networks())
      if (kind !== undefined && !allowed.has(kind))
        refused.push(`${source} said ${address}, which is ${LABELS[kind]}`)
      else if (!candidates.some(known => known.address === address)) {
        candidates.push({ address, source, verified: verified.get(place.host) === address })
      }
    }
    for (const source of sources) {
      if (!source.answers(place.host)) continue
      for (const address of await source.ask(place.host, signal).catch(() => [])) take(address, source.name)
      signal.throwIfAborted()
      if (candidates.length > 0) break
    }
    if (place.fallback !== undefined) {
      const kind = isIP(place.fallback) === 0 ? undefined : unusableKind(place.fallback, networks())
      // A bridge somebody named is meant; an address of this computer would run here what was meant for another.
      if (kind === undefined || kind === 'container-bridge' || allowed.has(kind))
        candidates.push({ address: place.fallback, source: 'fallback', verified: false })
      else refused.push(`the fallback is ${place.fallback}, which is ${LABELS[kind]}`)
    }
    if (candidates.length === 0) throw nothingFound(place.host, refused)
    return { candidates, until: now() + ttlMs }
  }

  const entryOf = (place: Place): Promise<Entry> => {
    const key = `${place.host} ${place.fallback ?? ''}`
    const known = entries.get(key)
    if (known && known.until > now()) return Promise.resolve(known)
    const asked = pending.get(key)
    if (asked) return asked
    // Shared by all who wait for it: it has a time of its own, and nobody's signal.
    const deadline = createDeadline([], LOOKUP_MS)
    const question = lookUp(place, deadline.signal)
      .then(entry => {
        entries.set(key, entry)
        return entry
      })
      .catch((error: unknown) => {
        throw deadline.expired ? tookTooLong(place.host) : error
      })
      .finally(() => {
        deadline.clear()
        pending.delete(key)
      })
    pending.set(key, question)
    return question
  }

  return {
    resolve: async (place, signal) => {
      // What the user wrote as an address is meant; it only has to be one that a machine can have.
      if (isIP(place.host) !== 0)
        return {
          address: literal(place.host, networks()),
          source: 'configuration',
          verified: verified.has(place.host),
        }
      const { candidates } = await abortable(entryOf(place), signal)
      const known = verified.get(place.host)
      const rank = (candidate: ResolvedAddress): number =>
        (candidate.address === known ? -2 : 0) + (isSuspect(place.host, candidate.address) ? 1 : 0)
      const best = candidates.reduce((a, b) => (rank(b) < rank(a) ? b : a))
      return { ...best, verified: best.address === known }
    },
    verified: (host, address) => {
      verified.set(host, address)
      suspects.delete(`${host} ${address}`)
    },
    failed: (host, address) => {
      if (verified.get(host) === address) verified.delete(host)
      suspects.set(`${host} ${address}`, now() + Math.max(ttlMs, 10_000))
    },
  }
}

const literal = (address: string, networks: LocalNetworks): string => {
  const kind = unusableKind(address, networks)
  if (kind === 'unspecified' || kind === 'multicast' || kind === 'broadcast') {
    throw new AppError('invalid', `${address} cannot be the address of a node: it is ${LABELS[kind]}`)
  }
  return address
}

const tookTooLong = (host: string): AppError =>
  new AppError('unavailable', `the name services took longer than ${LOOKUP_MS / 1000} s for "${host}"`, {
    hint: 'Give the node a fallback address, or put its name into /etc/hosts.',
    details: { failure: 'unresolved' },
  })

const LABELS: Record<AddressKind, string> = {
  loopback: 'this computer itself',
  'link-local': 'a link-local address',
  multicast: 'a multicast address',
  unspecified: 'no address at all',
  broadcast: 'a broadcast address',
  'container-bridge': 'a bridge for containers',
  'not-an-address': 'not an address',
}

const nothingFound = (host: string, refused: readonly string[]): AppError =>
  new AppError(
    'unavailable',
    `no usable address for "${host}"${refused.length > 0 ? `: ${refused.join('; ')}` : ''}`,
    {
      hint: `Give the node a fallback address, or put ${host} into DNS or /etc/hosts. For labs: cluster.addresses.allow.`,
      details: { failure: 'unresolved' },
    },
  )
