import type { Config, SecretRule } from '../config/schema.ts'
import { AppError } from '../jobs/errors.ts'
import type { Manifest } from '../jobs/manifest.ts'
import { ownProperty } from '../jobs/own-property.ts'
import type { CommandSpec } from '../ports.ts'

/** How a job uses its secrets. */
export interface SecretUse {
  readonly agent: string
  readonly runtime: string
  readonly network: CommandSpec['network']
  readonly labels: Readonly<Record<string, string>>
  readonly origin: string
  /** The job runs in the kept machine of an earlier job. */
  readonly kept: boolean
}

export const secretUse = (
  { agentType, labels = {}, machine }: Manifest,
  { network }: Pick<CommandSpec, 'network'>,
  { runtime, origin }: { readonly runtime: string; readonly origin: string },
): SecretUse => ({
  agent: agentType,
  runtime,
  // A kept machine has the network of the job it was made for, whatever the follow-up job requests.
  network: machine === undefined ? network : 'full',
  labels,
  origin,
  kept: machine !== undefined,
})

/** Throws when the configuration does not allow this job to use one of these secrets. */
export const checkSecretUse = (
  names: readonly string[],
  use: SecretUse,
  secrets: Config['secrets'],
): void => {
  for (const name of names) {
    const rule = ruleOf(secrets, name)
    const problem = problemWith(rule, use)
    if (problem === undefined) continue
    throw new AppError('denied', `The secret '${name}' may not be used ${problem}.`, {
      hint: problem.endsWith(OVER_MCP)
        ? `${use.kept ? 'Use a new machine.' : 'Ask for the domains the job needs, such as network: [registry.npmjs.org].'} Only the user can allow it, in the configuration: secrets: { ${name}: ${JSON.stringify({ ...rule, networks: ['full'] })} }`
        : `Only the user can change who may use it: secrets.${name} in the configuration.`,
    })
  }
}

/** Whether the provider must guarantee that the job has no network. */
export const mustForbidNetwork = (
  names: readonly string[],
  origin: string,
  secrets: Config['secrets'],
): boolean => names.some(name => !mayHaveFullNetwork(ruleOf(secrets, name), origin))

const ruleOf = (secrets: Config['secrets'], name: string): SecretRule => {
  const entry = ownProperty(secrets, name)
  return typeof entry === 'object' && 'from' in entry ? entry : { from: entry ?? '' }
}

const mayHaveFullNetwork = ({ networks }: SecretRule, origin: string): boolean =>
  networks === undefined ? !isMcp(origin) : networks.includes('full')

/** Only the MCP server sets origins of this form, and a client cannot change the origin of its job. */
const isMcp = (origin: string): boolean => origin === 'mcp' || origin.startsWith('mcp:')

const OVER_MCP = ', over MCP'

const problemWith = (rule: SecretRule, use: SecretUse): string | undefined => {
  const { agents, runtimes, networks, labels = [] } = rule
  if (agents !== undefined && !agents.includes(use.agent)) return `by the agent '${use.agent}'`
  if (runtimes !== undefined && !runtimes.includes(use.runtime)) return `in the runtime '${use.runtime}'`
  const missing = labels.find(label => !hasLabel(use.labels, label))
  if (missing !== undefined) return `without the label '${missing}'`
  if (use.network === 'none' || mayHaveFullNetwork(rule, use.origin)) return undefined
  if (use.network === 'full') {
    const where = use.kept ? 'in a kept machine, which may have a network' : 'with network full'
    return networks === undefined ? `${where}${OVER_MCP}` : where
  }
  const open = networks && use.network.find(domain => !networks.some(entry => covers(entry, domain)))
  return open === undefined ? undefined : `with the network '${open}'`
}

/** `name` or `name=value`. */
const hasLabel = (labels: Readonly<Record<string, string>>, wanted: string): boolean => {
  const at = wanted.indexOf('=')
  const name = at === -1 ? wanted : wanted.slice(0, at)
  const value = ownProperty(labels, name)
  return value !== undefined && (at === -1 || value === wanted.slice(at + 1))
}

/** `*.example.org` covers everything below example.org. */
const covers = (entry: string, domain: string): boolean => {
  const [listed, asked] = [entry.toLowerCase(), domain.toLowerCase()]
  if (listed === asked) return true
  return listed.startsWith('*.') && asked.endsWith(listed.slice(1)) && asked.length > listed.length - 1
}
