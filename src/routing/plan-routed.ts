import { AppError } from '../jobs/errors.ts'
import { COMMAND_LABEL, WORKSPACE_LABEL } from '../jobs/labels.ts'
import type { ManifestInput } from '../jobs/manifest.ts'
import { classify } from '../nodes/classify-command.ts'
import type { Cluster } from '../nodes/cluster.ts'
import { assertAllowed } from '../nodes/policy/command-policy.ts'
import { type LocalMonitor, localTraits } from '../nodes/probe/local-load.ts'
import { overloadReason } from '../nodes/probe/node-health.ts'
import {
  compileRequirements,
  describeRequirements,
  firstUnmet,
  type Requirements,
} from '../nodes/requirements.ts'
import { unmetRequirement } from '../nodes/unmet-requirement.ts'
import { shellQuote } from '../runner/shell-words.ts'

export interface RoutedCommand {
  command: string
  requires?: Requirements
  /** Run on this node only. */
  node?: string | undefined
  /** Let the router choose; otherwise the command runs on this computer. */
  autoRoute: boolean
  /** Part of a batch: prefer nodes. */
  spread?: boolean
  cwd?: string | undefined
  /** Directory of the client on this computer: local commands run there when the request names none. */
  clientDirectory?: string | undefined
  timeoutSeconds?: number | undefined
  env?: Readonly<Record<string, string>> | undefined
}

/** What routing decisions depend on. */
export interface Routing {
  cluster: Cluster
  /** Name of this computer in results. */
  readonly localName: string
  local: LocalMonitor
  /** Commands may run on this computer without isolation. */
  hostAllowed: boolean
  /** Local commands would run as root. */
  isRoot: boolean
}

export interface Plan {
  manifest: ManifestInput
  autoRouted: boolean
  /** Why the command runs here or on a node; the node is chosen when it starts. */
  because: string
}

/** Turns a command into a manifest: where it may run, whether the policy allows it, and its directory. */
export const planRouted = async (request: RoutedCommand, routing: Routing): Promise<Plan> => {
  const { cluster } = routing
  const decision = await decide(request, routing)
  const directory = request.cwd ?? (decision.place === 'local' ? request.clientDirectory : undefined)
  assertAllowed(request.command, {
    // On a node, the user is checked when the node is known.
    root: decision.place === 'local' && routing.isRoot,
    ...(directory !== undefined && { cwd: directory }),
    ...(request.env !== undefined && { env: request.env }),
    deny: cluster.config.policy.deny,
    disable: cluster.config.policy.disable,
  })
  const timeout = request.timeoutSeconds ?? cluster.config.timeouts.command
  const common = {
    agentType: 'script',
    network: 'full',
    timeout,
    retries: 2,
    ...(request.env !== undefined && { env: { ...request.env } }),
  } as const
  const labels = { [COMMAND_LABEL]: decision.place }
  if (decision.place === 'local') {
    // A local command runs in the directory itself, not in a copy.
    const task =
      directory === undefined ? request.command : `cd ${shellQuote(directory)} || exit\n${request.command}`
    return {
      manifest: { ...common, task, runtime: 'host', labels },
      autoRouted: false,
      because: decision.because,
    }
  }
  const { os, arch, capabilities, labels: marks } = request.requires ?? {}
  const misfit = unmetRequirement(cluster, { os, arch, capabilities, labels: marks })
  if (misfit !== undefined) throw nothingFits(misfit, routing)
  const requires = {
    ...(os && { os }),
    ...(arch && { arch }),
    ...(capabilities && capabilities.length > 0 && { capabilities: [...capabilities] }),
    ...(marks && Object.keys(marks).length > 0 && { labels: { ...marks } }),
    ...(request.node !== undefined && { node: cluster.find(request.node).id }),
  }
  return {
    manifest: {
      ...common,
      task: request.command,
      runtime: 'node',
      requires,
      ...(request.cwd !== undefined && { workspace: { path: request.cwd, patch: true } }),
      labels: {
        ...labels,
        ...(request.cwd !== undefined && { [WORKSPACE_LABEL]: request.cwd.slice(0, 256) }),
      },
    },
    autoRouted: request.node === undefined,
    because: decision.because,
  }
}

const ALLOW_HOST = 'deputy config set host.allow true && deputy nodes reload'

const nothingFits = (misfit: string, { hostAllowed }: Routing): AppError =>
  new AppError('unsupported', `${misfit.charAt(0).toUpperCase()}${misfit.slice(1)}.`, {
    hint: `deputy nodes list shows the nodes and their traits; deputy nodes add adds one.${
      hostAllowed ? '' : ` To let commands run on this computer: ${ALLOW_HOST}`
    }`,
  })

const decide = async (
  request: RoutedCommand,
  routing: Routing,
): Promise<{ place: 'local' | 'node'; because: string }> => {
  const { cluster, hostAllowed } = routing
  if (request.node !== undefined)
    return { place: 'node', because: `it was sent to ${cluster.find(request.node).id}.` }
  const misfit = localMisfit(request.requires ?? {}, routing)
  if (!request.autoRoute) return stay(misfit, hostAllowed)
  if (misfit !== undefined) return { place: 'node', because: `this computer ${misfit}.` }
  if (!hostAllowed)
    return { place: 'node', because: 'this computer may not run commands itself (host.allow is off).' }
  if (request.spread) return { place: 'node', because: 'a batch is spread over the nodes.' }
  const { place, because } = classify(request.command, cluster.config.routing, request.cwd !== undefined)
  if (place === 'offload') return { place: 'node', because: `"${because}" is work for a node.` }
  const overload = overloadReason(await routing.local.load(), cluster.config.thresholds)
  if (overload !== undefined) return { place: 'node', because: `this computer is overloaded: ${overload}.` }
  return { place: 'local', because: 'it is a simple command, and this computer has room for it.' }
}

const stay = (misfit: string | undefined, hostAllowed: boolean): { place: 'local'; because: string } => {
  if (misfit !== undefined) {
    throw new AppError(
      'unsupported',
      `auto_route is off, so the command runs here, but this computer ${misfit}.`,
      {
        hint: 'Turn auto_route on, or change the requirements.',
      },
    )
  }
  if (!hostAllowed) {
    throw new AppError('denied', 'auto_route is off, but commands may not run on this computer.', {
      hint: `Turn auto_route on, or the user allows it: ${ALLOW_HOST}`,
    })
  }
  return { place: 'local', because: 'auto_route is off.' }
}

/** Requirements also apply to local commands. */
const localMisfit = (requires: Requirements, { local }: Routing): string | undefined => {
  const wanted = compileRequirements(requires)
  if (wanted.empty) return undefined
  const { os, arch } = localTraits()
  const capabilities = new Set(wanted.capabilities.filter(name => local.has(name)))
  const clause = firstUnmet(wanted, { os, arch, capabilities, labels: {} })
  return clause && `${clause} (required: ${describeRequirements(wanted)})`
}
