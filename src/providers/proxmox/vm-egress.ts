import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import { createAllowList } from '../../egress/allow-list.ts'
import { proxyEnvironment } from '../../egress/proxy-environment.ts'
import { createProxyGrant } from '../../egress/proxy-grant.ts'
import { hashToken } from '../../guest/token-hash.ts'
import { AppError } from '../../jobs/errors.ts'
import type { AttachRequest, CommandSpec, Run } from '../../ports.ts'
import type { Address } from './callback-address.ts'
import type { GuestSession, GuestSessions } from './guest-sessions.ts'
import type { ProxmoxProviderOptions } from './proxmox-provider-options.ts'
import type { Details } from './vm-details.ts'

/** Connections that one machine may have open through the proxy. */
const MOST = 64

export interface EgressOptions {
  readonly provider: ProxmoxProviderOptions
  readonly sessions: GuestSessions
  readonly session: GuestSession
  readonly run: AttachRequest
  readonly details: Details
  readonly fresh: Run | undefined
  address(): Promise<Address>
}

/** The access of a running job to our proxy. */
export interface Egress {
  readonly domains: readonly string[] | undefined
  /** For the command. The token in it is its own: it opens the proxy and nothing else, and dies with the job. */
  readonly env: Readonly<Record<string, string>>
  readonly secrets: Readonly<Record<string, string>>
  /** Details to store with the start. */
  readonly note: Partial<Details>
  end(): void
}

export const openEgress = async (options: EgressOptions): Promise<Egress> => {
  const { run, details, fresh } = options
  if (fresh === undefined) {
    const known = details.started?.jobId === run.job.id ? details.egress : undefined
    if (!known) return CLOSED
    return { ...CLOSED, domains: known.domains, end: allow(options, known.tokenHash, known.domains) }
  }
  const domains = domainsFor(fresh, details)
  if (domains === undefined) return details.egress ? { ...CLOSED, note: { egress: null } } : CLOSED
  const { host, port } = await options.address()
  const token = randomBytes(24).toString('base64url')
  const tokenHash = hashToken(token)
  return {
    domains,
    env: proxyEnvironment(`http://deputy:${token}@${isIP(host) === 6 ? `[${host}]` : host}:${port}`, domains),
    secrets: { proxy: token },
    note: { egress: { tokenHash, domains } },
    end: allow(options, tokenHash, domains),
  }
}

/** Why these settings cannot enforce a list of domains; undefined if they can. */
export const egressProblem = ({
  channel,
  callback,
}: Pick<ProxmoxProviderOptions, 'channel' | 'callback'>): string | undefined => {
  if (channel === 'agent')
    return 'machines that report through the guest agent have no way to the proxy that keeps a list of domains: use none or full, or the channel callback'
  // An HTTPS address without our own certificate is that of a proxy of somebody else, which carries no tunnels.
  const direct = callback.tls ? /^https?:\/\/[^/]+\/?$/ : /^http:\/\/[^/]+\/?$/
  if (callback.url !== undefined && !direct.test(callback.url))
    return `a list of domains needs a callback address that leads to us directly, and ${callback.url} does not: use none or full`
  return undefined
}

/** Returns the network that the VM's firewall allows: none for a list of domains, which goes through our proxy. */
export const firewallFor = (
  network: CommandSpec['network'],
  provider: ProxmoxProviderOptions,
): 'none' | 'full' => {
  if (typeof network === 'string') return network
  const problem = egressProblem(provider)
  if (problem === undefined) return 'none'
  throw new AppError('unsupported', `The job may reach a list of domains only, and ${problem}.`)
}

const CLOSED: Egress = { domains: undefined, env: {}, secrets: {}, note: {}, end: () => {} }

/** A follow-up job without a network setting keeps that of the machine. */
const domainsFor = ({ manifest, command }: Run, { egress }: Details): readonly string[] | undefined => {
  if (manifest.machine !== undefined && manifest.network === undefined) return egress?.domains
  return typeof command.network === 'string' ? undefined : command.network
}

const allow = (
  { provider, sessions, session }: EgressOptions,
  tokenHash: string,
  domains: readonly string[],
): (() => void) => {
  const { privateAddresses } = provider.network
  const grant = createProxyGrant({ allowed: createAllowList(domains, { privateAddresses }) }, MOST)
  return sessions.allow(session, tokenHash, grant)
}
