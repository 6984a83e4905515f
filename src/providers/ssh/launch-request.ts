import { AppError } from '../../jobs/errors.ts'
import type { Cluster } from '../../nodes/cluster.ts'
import type { ClusterNode } from '../../nodes/inventory.ts'
import { assertAllowed } from '../../nodes/policy/command-policy.ts'
import type { ProbeReport } from '../../nodes/probe/probe-report.ts'
import { workspaceDirectory } from '../../nodes/sync/node-workspace.ts'
import type { CommandSpec, Run } from '../../ports.ts'
import type { RunOptions } from '../../runner/run.ts'
import { type RunContext, type SealingKeys, sealContext } from '../../runner/sealed-context.ts'
import { shellJoin } from '../../runner/shell-words.ts'
import { type Launch, startRequest } from '../../runner/start-request.ts'
import { type IsolationRequest, isolatedScript, isolationProblem } from './bubblewrap-script.ts'

export interface LaunchContext extends Pick<RunOptions, 'blobs' | 'keep' | 'graceSeconds'> {
  /** Seal the context of a run. */
  readonly keys: SealingKeys
  readonly cluster: Cluster
  readonly routed: boolean
}

const FIRST_UID = 62_000
const UIDS = 3_000

/** The start request of a job: in bubblewrap where the node has it. */
export const launch = async (launching: LaunchContext, run: Run, node: ClusterNode): Promise<Launch> => {
  const { cluster, routed } = launching
  const { command: spec } = run
  const report = routed ? cluster.peek(node)?.report : await reportOf(cluster, node, run.detach)
  const problem = routed ? 'a routed command' : isolationProblem(report)
  const plain = problem !== undefined
  const who = node.user ?? cluster.config.ssh.user ?? (report?.root ? 'root' : 'the login user')
  if (plain) {
    assertAllowed(commandText(spec.argv), {
      // Without a configured user, ssh logs in with the user name of this daemon.
      root: report?.root ?? (who === 'root' || (who === 'the login user' && process.getuid?.() === 0)),
      env: spec.env,
      deny: cluster.config.policy.deny,
      disable: cluster.config.policy.disable,
    })
  }
  if (plain && !routed && run.manifest.network === 'none') {
    throw new AppError('unsupported', `Node ${node.id} cannot keep a job from the network: ${problem}.`, {
      hint: 'Install bubblewrap there, or ask for network full.',
    })
  }
  const isolation = plain
    ? [`none: ran on ${node.id} as ${who}${routed ? '' : ` (${problem})`}`]
    : [
        'namespaces (bubblewrap)',
        'no capabilities',
        spec.network === 'full' ? 'network of the node' : 'no network',
        'no limits on memory and processor',
      ]
  const argv = plain
    ? spec.argv
    : isolatedArgv(spec.argv, cluster, {
        machineId: run.machine.id,
        variables: [...Object.keys(spec.env), ...Object.keys(spec.secrets)],
        network: spec.network,
        root: report?.root ?? false,
      })
  const context: RunContext = {
    secrets: Object.values(spec.secrets),
    format: spec.format,
    isolation,
    timeoutSeconds: spec.timeoutSeconds,
  }
  return {
    context,
    start: startRequest({
      run,
      keep: launching.keep,
      graceSeconds: launching.graceSeconds,
      context: sealContext(context, launching.keys),
      env: { ...spec.env, ...spec.secrets },
      argv,
    }),
  }
}

interface Isolation extends Pick<IsolationRequest, 'variables' | 'root' | 'isSession'> {
  readonly machineId: string
  readonly network: CommandSpec['network']
}

/** A command in bubblewrap, with the workspace of a machine. */
export const isolatedArgv = (
  argv: readonly string[],
  cluster: Cluster,
  { machineId, network, ...more }: Isolation,
): string[] => {
  const script = isolatedScript({
    ...more,
    workspace: workspaceDirectory(cluster.owner, machineId),
    network: network === 'full' ? 'full' : 'none',
    uid: FIRST_UID + ((Number.parseInt(machineId.replace(/\D/g, '').slice(-6), 10) || 0) % UIDS),
  })
  return ['bash', '-c', script, 'deputy', ...argv]
}

/** What is known of a node; it is probed if nothing is. */
export const reportOf = async (
  cluster: Cluster,
  node: ClusterNode,
  signal: AbortSignal,
): Promise<ProbeReport> => cluster.peek(node)?.report ?? (await cluster.probe(node, signal)).report

/** `bash -c TEXT` is TEXT to the policy; any other argv is one simple command. */
const commandText = (argv: readonly string[]): string =>
  argv.length === 3 && argv[0] === 'bash' && argv[1] === '-c' ? argv[2]! : shellJoin(argv)
