import type { AgentPreset } from '../config/schema.ts'
import { AppError } from '../jobs/errors.ts'
import type { Manifest } from '../jobs/manifest.ts'
import { didYouMean } from '../jobs/nearest.ts'
import { ownProperty } from '../jobs/own-property.ts'
import { WORKSPACE } from '../jobs/paths.ts'
import { PROGRESS_MARK } from '../output/progress-scanner.ts'
import type { CommandSpec } from '../ports.ts'
import { redirectingVariable } from './redirecting-variables.ts'

/** A command with the names of its secrets, before their values are resolved. */
export type CommandPlan = Omit<CommandSpec, 'secrets'> & { readonly secretNames: readonly string[] }

export interface PlanContext {
  readonly jobId: string
  readonly presets: Readonly<Record<string, AgentPreset>>
  readonly secretNames: readonly string[]
  readonly timeoutSeconds: number
  /** Base URL of the claude agent's API; Anthropic's when absent. */
  readonly claudeBaseUrl?: string | undefined
  /** Finds a program in the daemon's PATH; undefined when it is not installed. */
  locate(program: string): { path: string; shows: readonly string[] } | undefined
}

/**
 * Builds the command of a manifest. The result is always an argv: user input never becomes part of a shell script that
 * Deputy writes.
 */
export const planCommand = (manifest: Manifest, context: PlanContext): CommandPlan => {
  const plan = agentPlan(manifest, context)
  const secretNames = [...new Set([...(manifest.secrets ?? []), ...plan.secretNames])]
  for (const name of secretNames)
    if (!context.secretNames.includes(name)) throw unknownSecret(name, context.secretNames)
  const passedSecrets = secretNames.filter(name => ownProperty(manifest.env ?? {}, name) === undefined)
  if (passedSecrets.length > 0) refuseRedirects(manifest, plan)
  return {
    ...plan,
    env: {
      // Before the manifest's: a job may set its own.
      DEPUTY_PROGRESS: PROGRESS_MARK,
      ...plan.env,
      ...manifest.env,
      DEPUTY_JOB_ID: context.jobId,
      DEPUTY_WORKSPACE: WORKSPACE,
    },
    secretNames: passedSecrets,
    network: manifest.network ?? plan.network,
    timeoutSeconds: context.timeoutSeconds,
  }
}

/**
 * Adds the network that the agent needs, as if the user had asked for it. 'none' is left out: as an explicit request it
 * would exclude providers that cannot block the network.
 */
export const withNetwork = (manifest: Manifest, { network }: Pick<CommandPlan, 'network'>): Manifest =>
  network === 'none'
    ? manifest
    : { ...manifest, network: typeof network === 'string' ? network : [...network] }

type AgentPlan = Pick<CommandPlan, 'argv' | 'env' | 'secretNames' | 'network' | 'programs' | 'format'>

/**
 * Rejects variables in the manifest that could redirect the agent's requests: only the configuration decides where
 * secrets are sent.
 */
const refuseRedirects = ({ agentType, env = {} }: Manifest, plan: AgentPlan): void => {
  // For these agents the manifest is the program, which can send its secrets to any host that the network allows.
  if (agentType === 'script' || agentType === 'custom') return
  const names = Object.keys(env)
  const name = redirectingVariable(names) ?? names.find(key => ownProperty(plan.env, key) !== undefined)
  if (name === undefined) return
  throw new AppError(
    'denied',
    `'${name}' in 'env' could send the secrets of the agent '${agentType}' to another host.`,
    {
      hint: `Remove it, or pass the job its own token in 'env'. To allow it, set it in the configuration: ${agentType === 'claude' ? 'claude.baseUrl' : `agents.${agentType}.env`}.`,
    },
  )
}

const agentPlan = (manifest: Manifest, context: PlanContext): AgentPlan => {
  switch (manifest.agentType) {
    case 'script':
      return shell(manifest.agent?.command ?? manifest.task, manifest.task)
    case 'custom':
      return shell(manifest.agent?.command ?? manifest.task, manifest.task)
    case 'claude':
      return claude(manifest, context)
    default:
      return preset(manifest, context)
  }
}

const shell = (command: string | readonly string[], task: string): AgentPlan => ({
  // bash would parse a command that starts with - or + as one of its own options.
  argv: typeof command === 'string' ? ['bash', '-c', command.replace(/^[-+]/, ' $&')] : command,
  env: { DEPUTY_TASK: task.slice(0, 32_768) },
  secretNames: [],
  network: 'none',
  programs: [],
  format: 'text',
})

const CLAUDE_TOKENS = ['ANTHROPIC_API_KEY', 'CLAUDE_CODE_OAUTH_TOKEN']
const CLAUDE_DOMAINS = ['*.anthropic.com', '*.claude.com', 'claude.ai']

/** Forces verified TLS to the API, so that a proxy cannot read the traffic. */
const TRUST = { NODE_TLS_REJECT_UNAUTHORIZED: '1', NODE_EXTRA_CA_CERTS: '', ANTHROPIC_UNIX_SOCKET: '' }

const claude = (manifest: Manifest, context: PlanContext): AgentPlan => {
  const program = context.locate('claude')
  const named = [...(manifest.secrets ?? []), ...Object.keys(manifest.env ?? {})]
  const token = CLAUDE_TOKENS.find(name => context.secretNames.includes(name))
  const needsToken = !named.some(name => CLAUDE_TOKENS.includes(name) || name === 'ANTHROPIC_AUTH_TOKEN')
  if (needsToken && token === undefined)
    throw new AppError('unsupported', 'The claude agent has no token.', {
      hint: `Set ANTHROPIC_API_KEY (or CLAUDE_CODE_OAUTH_TOKEN from 'claude setup-token') in the daemon's environment, or configure one of them under secrets, then: deputy daemon restart`,
    })
  const model = manifest.agent?.claudeModel
  const baseUrl = manifest.env?.ANTHROPIC_BASE_URL ?? context.claudeBaseUrl
  const pinned = { ...TRUST, ANTHROPIC_BASE_URL: baseUrl ?? 'https://api.anthropic.com' }
  return {
    argv: [
      program?.path ?? 'claude',
      '--print',
      '--output-format',
      'stream-json',
      '--verbose',
      // The machine is the sandbox, and no user is present to answer permission prompts.
      '--dangerously-skip-permissions',
      // Settings files in the workspace could redirect requests and the token; settings on the command line take
      // precedence.
      '--settings',
      JSON.stringify({ env: pinned }),
      ...(model === undefined ? [] : ['--model', model]),
      '--',
      manifest.task,
    ],
    env: {
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      ...(context.claudeBaseUrl !== undefined && { ANTHROPIC_BASE_URL: context.claudeBaseUrl }),
    },
    secretNames: needsToken ? [token!] : [],
    network: [...CLAUDE_DOMAINS, ...baseUrlDomain(manifest.env?.ANTHROPIC_BASE_URL ?? context.claudeBaseUrl)],
    programs: program?.shows ?? [],
    format: 'claude-stream-json',
  }
}

const baseUrlDomain = (url: string | undefined): string[] => {
  if (url === undefined || !URL.canParse(url)) return []
  const { host } = new URL(url)
  return [host]
}

const preset = (manifest: Manifest, context: PlanContext): AgentPlan => {
  const found = ownProperty(context.presets, manifest.agentType)
  if (found === undefined) {
    const known = ['script', 'claude', 'custom', ...Object.keys(context.presets)]
    throw new AppError(
      'invalid',
      `Unknown agent '${manifest.agentType}'${didYouMean(manifest.agentType, known) || '.'}`,
      {
        hint: `Known agents: ${known.join(', ')}. Add more under agents in the configuration.`,
      },
    )
  }
  const model = manifest.agent?.claudeModel ?? ''
  const fill = (part: string): string =>
    part.replace(/\{(task|model)\}/g, (_, word) => (word === 'task' ? manifest.task : model))
  return {
    argv: found.argv.map(fill),
    env: { ...found.env, DEPUTY_TASK: manifest.task.slice(0, 32_768) },
    secretNames: found.secrets,
    network: found.network ?? 'none',
    programs: found.programs,
    format: found.format,
  }
}

const unknownSecret = (name: string, known: readonly string[]): AppError =>
  new AppError('invalid', `The secret '${name}' is not configured${didYouMean(name, known) || '.'}`, {
    hint: `Add it to the configuration, for example: secrets: { ${name}: 'env:${name}' }. Configured: ${known.join(', ') || 'none'}.`,
  })
