import type { ProxyGrant } from '../../egress/proxy-grant.ts'
import type { JobHandler, MachineHandler, Work } from '../../guest/machine-handler.ts'

/** The state of a machine that talks to the guest listener. */
export interface GuestSession {
  readonly machineId: string
  readonly tokenHash: string
  /** Set by the first request of the machine; kept in memory only. */
  token: string | undefined
  /** Source address of the last request. */
  address: string | undefined
  /** When the machine was first and last heard of. */
  firstContact: number | undefined
  lastContact: number | undefined
  /** The order for the runner; sent with each poll until the runner reports the start. */
  work: Work | undefined
  job: { readonly id: string; readonly port: JobHandler } | undefined
  /** One command at a time. */
  busy: boolean
}

/** Shorter than common proxy timeouts and the timeout of the runner. */
const LONG_POLL_MS = 25_000

/** The machines that may use the callback server, by the hash of their token. */
export const createGuestSessions = (now: () => number) => {
  const byHash = new Map<string, GuestSession>()
  const byMachine = new Map<string, GuestSession>()
  const changed = new Map<string, Set<() => void>>()
  const grants = new Map<string, { readonly session: GuestSession; readonly grant: ProxyGrant }>()

  const notify = (machineId: string): void => {
    for (const wake of [...(changed.get(machineId) ?? [])]) wake()
  }

  /** Resolves at the next change of this machine, on abort, or after `ms`. */
  const change = (machineId: string, ms: number, signal: AbortSignal): Promise<void> =>
    new Promise(resolve => {
      const waiting = changed.get(machineId) ?? new Set()
      changed.set(machineId, waiting)
      const done = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        waiting.delete(done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      signal.addEventListener('abort', done, { once: true })
      waiting.add(done)
      if (signal.aborted) done()
    })

  const handlerOf = (session: GuestSession): MachineHandler => ({
    work: async signal => {
      const end = now() + LONG_POLL_MS
      while (
        session.work === undefined &&
        now() < end &&
        !signal.aborted &&
        byMachine.get(session.machineId) === session
      ) {
        await change(session.machineId, end - now(), signal)
      }
      return session.work
    },
    job: id => (session.job?.id === id ? session.job.port : undefined),
  })

  return {
    get size() {
      return byMachine.size
    },
    change,
    add(machineId: string, tokenHash: string): GuestSession {
      const present = byMachine.get(machineId)
      if (present?.tokenHash === tokenHash) return present
      if (present) byHash.delete(present.tokenHash)
      const session = newSession(machineId, tokenHash)
      byHash.set(tokenHash, session)
      byMachine.set(machineId, session)
      return session
    },
    get: (machineId: string): GuestSession | undefined => byMachine.get(machineId),
    /** For the listener: finds the machine by its token and records the contact. */
    machine(tokenHash: string, token: string, from: string): MachineHandler | undefined {
      const session = byHash.get(tokenHash)
      if (session === undefined) return undefined
      session.token = token
      session.address = from
      const first = session.firstContact === undefined
      session.lastContact = now()
      session.firstContact ??= session.lastContact
      if (first) notify(session.machineId)
      return handlerOf(session)
    },
    bind(session: GuestSession, job: GuestSession['job'], work: Work | undefined): void {
      session.job = job
      session.work = work
      notify(session.machineId)
    },
    notify,
    /** Lets a job of this machine use the proxy until the returned function is called. */
    allow(session: GuestSession, proxyHash: string, grant: ProxyGrant): () => void {
      grants.set(proxyHash, { session, grant })
      return () => {
        if (grants.get(proxyHash)?.grant === grant) grants.delete(proxyHash)
        grant.end()
      }
    },
    /** Returns the grant of a proxy token if the request comes from the address of the token's machine. */
    egress(proxyHash: string, from: string): ProxyGrant | undefined {
      const entry = grants.get(proxyHash)
      return entry?.session.address === from ? entry.grant : undefined
    },
    drop(machineId: string): void {
      const session = byMachine.get(machineId)
      if (session === undefined) return
      byHash.delete(session.tokenHash)
      byMachine.delete(machineId)
      notify(machineId)
      changed.delete(machineId)
    },
  }
}

const newSession = (machineId: string, tokenHash: string): GuestSession => ({
  machineId,
  tokenHash,
  token: undefined,
  address: undefined,
  firstContact: undefined,
  lastContact: undefined,
  work: undefined,
  job: undefined,
  busy: false,
})

export type GuestSessions = ReturnType<typeof createGuestSessions>
