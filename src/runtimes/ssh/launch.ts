import type { ClusterNode } from '../../cluster/inventory.ts'
import { assertAllowed } from '../../cluster/policy/check.ts'
import { shellJoin } from '../../cluster/remote/quote.ts'
import type { RemoteCommand } from '../../cluster/remote/shim.ts'
import { workspaceDirectory } from '../../cluster/sync/workspace.ts'
import { AppError } from '../../jobs/errors.ts'
import type { Run } from '../../ports.ts'
import { isolatedScript, isolationProblem, plainScript } from './isolation.ts'
import { type Memo, sealMemo } from './memo.ts'
import { type RunContext, runId } from './run.ts'

const FIRST_UID = 62_000
const UIDS = 3_000

/** What the node is given for a job: in a box where it has one, and a word on how it is kept apart. */
export const launch = async (
  context: RunContext,
  run: Run,
  node: ClusterNode,
): Promise<{ command: RemoteCommand; memo: Memo }> => {
  const { cluster, routed } = context
  const { command: spec } = run
  const report = routed ? cluster.peek(node)?.report : await known(context, node, run.detach)
  const problem = routed ? 'a routed command' : isolationProblem(report)
  const workspace = workspaceDirectory(cluster.owner, run.machine.id)
  const plain = problem !== undefined
  const who = node.user ?? cluster.config.ssh.user ?? (report?.root ? 'root' : 'the login user')
  if (plain) {
    assertAllowed(commandText(spec.argv), {
      // A login without a name is under the name this daemon has.
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
  const script = plain
    ? plainScript(spec.argv)
    : isolatedScript({
        workspace,
        argv: spec.argv,
        variables: [...Object.keys(spec.env), ...Object.keys(spec.secrets)],
        network: spec.network === 'full' ? 'full' : 'none',
        uid: FIRST_UID + ((Number.parseInt(run.machine.id.replace(/\D/g, '').slice(-6), 10) || 0) % UIDS),
        root: report?.root ?? false,
      })
  const memo: Memo = {
    secrets: Object.values(spec.secrets),
    format: spec.format,
    isolation,
    timeoutSeconds: spec.timeoutSeconds,
  }
  return {
    memo,
    command: {
      id: runId(run),
      command: script,
      ...(plain && { argv: spec.argv }),
      workspace: run.machine.id,
      env: { ...spec.env, ...spec.secrets },
      timeoutSeconds: spec.timeoutSeconds,
      graceSeconds: context.graceSeconds,
      keep: context.keep,
      memo: sealMemo(memo, context.memoKey),
    },
  }
}

const known = async (context: RunContext, node: ClusterNode, signal: AbortSignal) =>
  context.cluster.peek(node)?.report ?? (await context.cluster.probe(node, signal)).report

/** `bash -c TEXT` is TEXT to the policy; any other argv is one simple command. */
const commandText = (argv: readonly string[]): string =>
  argv.length === 3 && argv[0] === 'bash' && argv[1] === '-c' ? argv[2]! : shellJoin(argv)
