import { execFile } from 'node:child_process'
import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'

/** Returns an empty list for an unknown name. */
type AddressLookup = (host: string, signal: AbortSignal) => Promise<string[]>

export interface NameService {
  name: string
  /** Whether the service can know such a name. */
  handles(host: string): boolean
  lookUp: AddressLookup
}

const TOOL_TIMEOUT_MS = 2_500

/**
 * mDNS with the tools of the system, then DNS, then the system resolver (/etc/hosts, LDAP…). `server` replaces the
 * DNS servers of the system and also resolves names without a dot.
 */
export const systemNameServices = (server?: string): NameService[] => [
  { name: 'mdns', handles: host => isMdnsName(host), lookUp: lookUpMdns },
  {
    name: server === undefined ? 'dns' : `dns ${server}`,
    handles: host => (host.includes('.') || server !== undefined) && !isMdnsName(host),
    lookUp: lookUpDns(server),
  },
  { name: 'hosts', handles: () => true, lookUp: lookUpSystem },
]

const lookUpMdns: AddressLookup = async (host, signal) => {
  const name = host.replace(/\.$/, '')
  const tools: [string, string[]][] =
    process.platform === 'darwin'
      ? [['dscacheutil', ['-q', 'host', '-a', 'name', name]]]
      : [
          ['avahi-resolve', ['-4', '-n', name]],
          ['avahi-resolve', ['-6', '-n', name]],
          ['getent', ['ahosts', name]],
        ]
  const outputs = await Promise.all(tools.map(([tool, args]) => runTool(tool, args, signal)))
  return addressesIn(outputs.join('\n'))
}

const isMdnsName = (host: string): boolean => /\.local\.?$/i.test(host)

const lookUpDns =
  (server: string | undefined): AddressLookup =>
  async (host, signal) => {
    const resolver = new Resolver({ timeout: 2000, tries: 1 })
    if (server !== undefined) resolver.setServers([server])
    const onAbort = (): void => resolver.cancel()
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
      return answers.flatMap(answer => (answer.status === 'fulfilled' ? answer.value : []))
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

const lookUpSystem: AddressLookup = async host => {
  const answers = await lookup(host, { all: true, verbatim: true }).catch(() => [])
  return answers.map(answer => answer.address)
}

/** Extracts the addresses from the output of a tool. */
export const addressesIn = (text: string): string[] => [
  ...new Set(text.split(/[\s,]+/).filter(word => isIP(word) !== 0)),
]

const runTool = (tool: string, args: string[], signal: AbortSignal): Promise<string> =>
  new Promise(resolve => {
    execFile(tool, args, { timeout: TOOL_TIMEOUT_MS, signal, encoding: 'utf8' }, (_, stdout) =>
      resolve(stdout ?? ''),
    )
  })
