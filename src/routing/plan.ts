import { classify } from '../cluster/classify.ts'
import type { Cluster } from '../cluster/cluster.ts'
import { misfitOf } from '../cluster/misfit.ts'
import { assertAllowed } from '../cluster/policy/check.ts'
import { overloadReason } from '../cluster/probe/health.ts'
import { type LocalMonitor, localTraits } from '../cluster/probe/local.ts'
import { shellQuote } from '../cluster/remote/quote.ts'
import {
  compileRequirements,
  describeRequirements,
  type Requirements,
  unmet,
} from '../cluster/requirements.ts'
import { AppError } from '../jobs/errors.ts'
import { COMMAND_LABEL, WORKSPACE_LABEL } from '../jobs/labels.ts'
import type { ManifestInput } from '../jobs/manifest.ts'

export interface RoutedCommand {
  command: string
  requires?: Requirements
  /** This node and no other. */
  node?: string | undefined
  /** Let the router decide; otherwise it stays here. */
  autoRoute: boolean
  /** Part of a batch: nodes first. */
  spread?: boolean
  cwd?: string | undefined
  timeoutSeconds?: number | undefined
  env?: Readonly<Record<string, string>> | undefined
}

/** What a decision needs to know. */
export interface Routing {
  cluster: Cluster
  /** What results call this computer. */
  readonly localName: string
  local: LocalMonitor
  /** Commands may run on this computer as they are. */
  hostAllowed: boolean
  /** Commands here would run as root. */
  isRoot: boolean
}

export interface Plan {
  manifest: ManifestInput
  autoRouted: boolean
  /** Why it stays here or goes; which node is decided when it starts. */
  because: string
}

/** Turns a command into a job: where it may run, under which policy, with which directory. */
export const planRouted = async (request: RoutedCommand, routing: Routing): Promise<Plan> => {
  const { cluster } = routing
  const decision = await decide(request, routing)
  assertAllowed(request.command, {
    // As whom it runs on a node is asked when the node is known.
    root: decision.place === 'local' && routing.isRoot,
    ...(request.cwd !== undefined && { cwd: request.cwd }),
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
    // Here the directory is at hand: the command runs in it, not in a copy.
    const task =
      request.cwd === undefined
        ? request.command
        : `cd ${shellQuote(request.cwd)} || exit\n${request.command}`
    return {
      manifest: { ...common, task, runtime: 'host', labels },
      autoRouted: false,
      because: decision.because,
    }
  }
  const { os, arch, capabilities, labels: marks } = request.requires ?? {}
  const misfit = misfitOf(cluster, { os, arch, capabilities, labels: marks })
  if (misfit !== undefined) throw nothingFits(misfit)
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

const nothingFits = (misfit: string): AppError =>
  new AppError('unsupported', misfit, {
    hint: 'deputy nodes list shows what each node has; deputy nodes add brings another.',
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
      `With auto_route off the command stays here, and this computer ${misfit}.`,
      {
        hint: 'Leave auto_route on, or change what is required.',
      },
    )
  }
  if (!hostAllowed) {
    throw new AppError(
      'denied',
      'With auto_route off the command would run on this computer, which is not allowed.',
      {
        hint: 'Allow it (host: { allow: true } in the configuration), or leave auto_route on.',
      },
    )
  }
  return { place: 'local', because: 'auto_route is off.' }
}

/** Requirements are never ignored, whatever the computer they would be ignored on. */
const localMisfit = (requires: Requirements, { local }: Routing): string | undefined => {
  const wanted = compileRequirements(requires)
  if (wanted.empty) return undefined
  const { os, arch } = localTraits()
  const capabilities = new Set(wanted.capabilities.filter(name => local.has(name)))
  const clause = unmet(wanted, { os, arch, capabilities, labels: {} })
  return clause && `${clause} (required: ${describeRequirements(wanted)})`
}
