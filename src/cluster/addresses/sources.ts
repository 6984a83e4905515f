import { execFile } from 'node:child_process'
import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'

/** Asks one name service; an empty list when it does not know the name. */
export type AddressSource = (host: string, signal: AbortSignal) => Promise<string[]>

export interface NamedSource {
  name: string
  /** Whether to ask it for this name at all. */
  answers(host: string): boolean
  ask: AddressSource
}

const TOOL_TIMEOUT_MS = 2_500

/**
 * mDNS through whatever the system has, then DNS, then everything else the system knows (hosts, LDAP…). `server`
 * is asked instead of the system's DNS servers, for names without a dot as well: who sets one means it.
 */
export const systemSources = (server?: string): NamedSource[] => [
  { name: 'mdns', answers: host => isMulticast(host), ask: askMulticast },
  {
    name: server === undefined ? 'dns' : `dns ${server}`,
    answers: host => (host.includes('.') || server !== undefined) && !isMulticast(host),
    ask: askDns(server),
  },
  { name: 'hosts', answers: () => true, ask: askSystem },
]

const askMulticast: AddressSource = async (host, signal) => {
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

const isMulticast = (host: string): boolean => /\.local\.?$/i.test(host)

const askDns =
  (server: string | undefined): AddressSource =>
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

const askSystem: AddressSource = async host => {
  const answers = await lookup(host, { all: true, verbatim: true }).catch(() => [])
  return answers.map(answer => answer.address)
}

/** The addresses among the words a tool printed. */
export const addressesIn = (text: string): string[] => [
  ...new Set(text.split(/[\s,]+/).filter(word => isIP(word) !== 0)),
]

const runTool = (tool: string, args: string[], signal: AbortSignal): Promise<string> =>
  new Promise(resolve => {
    execFile(tool, args, { timeout: TOOL_TIMEOUT_MS, signal, encoding: 'utf8' }, (_, stdout) =>
      resolve(stdout ?? ''),
    )
  })
