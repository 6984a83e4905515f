import { Duplex } from 'node:stream'
import type { Cluster } from '../../nodes/cluster.ts'
import type { ClusterNode } from '../../nodes/inventory.ts'
import type { Program } from '../../nodes/ssh/start-program.ts'
import { workspaceDirectory } from '../../nodes/sync/node-workspace.ts'
import type { AttachRequest, Session, SessionRequest, TerminalSize } from '../../ports.ts'
import { runIdOf } from '../../runner/run.ts'
import { shellQuote as quote, shellJoin } from '../../runner/shell-words.ts'
import { terminalCommand } from '../../runner/terminal-command.ts'
import { isolationProblem } from './bubblewrap-script.ts'
import { isolatedArgv, reportOf } from './launch-request.ts'

interface NodeSessionOptions {
  readonly cluster: Cluster
  readonly node: ClusterNode
  /** The job that runs in the machine. */
  readonly run: AttachRequest
  readonly routed: boolean
  readonly request: SessionRequest
  readonly signal: AbortSignal
}

/**
 * Runs a program on a node, in the workspace of a machine. Where jobs run in bubblewrap, the program gets a box of its
 * own with the same files and the same network rights: without root, nothing can enter the box of the job.
 */
export const openNodeSession = async (options: NodeSessionOptions): Promise<Session> => {
  const { cluster, node, signal } = options
  const { terminal } = options.request
  const target = await cluster.target(node, signal)
  const script = await scriptOf(options)
  const program = await cluster.ssh.open({ target, script, terminal, signal })
  const onNode = (command: string): Promise<unknown> =>
    cluster.ssh
      .run({ target, script: `${command}\n`, signal: new AbortController().signal, timeoutMs: 30_000 })
      .catch(() => {})
  return sessionOf(program, onNode, signal)
}

const scriptOf = async ({ cluster, node, run, routed, request, signal }: NodeSessionOptions) => {
  // Not exported: a bash that starts the box would drop PS1.
  const variables = Object.entries(request.env).map(([name, value]) => `${name}=${value}`)
  const argv = ['env', ...variables, ...request.argv]
  const report = routed ? undefined : await reportOf(cluster, node, signal)
  // Create the terminal inside the sandbox: job control fails if the session leader is outside.
  const boxed = request.terminal === undefined ? argv : terminalCommand(argv, request.terminal, ':')
  const command =
    routed || isolationProblem(report) !== undefined
      ? argv
      : isolatedArgv(boxed, cluster, {
          machineId: run.machine.id,
          variables: [],
          network: run.manifest.network ?? 'none',
          root: report?.root ?? false,
          isSession: true,
        })
  return [
    `cd "$HOME"/${quote(workspaceDirectory(cluster.owner, run.machine.id))} || exit 126`,
    // DEPUTY_JOB marks the program as part of the job, so the runner kills both together.
    `export DEPUTY_WORKSPACE="$PWD" DEPUTY_JOB=${quote(runIdOf(run))}`,
    `exec ${shellJoin(command)}`,
  ].join('\n')
}

const sessionOf = (
  { child, pid, tty }: Program,
  onNode: (command: string) => Promise<unknown>,
  signal: AbortSignal,
): Session => {
  const { stdin, stdout } = child
  const stream: Duplex = new Duplex({
    read: () => void stdout.resume(),
    write: (chunk: Buffer, _encoding, done) => void stdin.write(chunk, () => done()),
    final: done => void stdin.end(() => done()),
    destroy: (error, done) => {
      signal.removeEventListener('abort', onAbort)
      if (child.exitCode === null && child.signalCode === null) {
        child.kill()
        // Without a terminal, nothing tells a program that nobody listens any more.
        void onNode(`kill -HUP -${pid} || kill -HUP ${pid}`)
      }
      done(error)
    },
  })
  const onAbort = (): void => void stream.destroy()
  signal.addEventListener('abort', onAbort, { once: true })
  stdout.on('data', (chunk: Buffer) => {
    if (!stream.push(chunk)) stdout.pause()
  })
  const exit = new Promise<number | null>(resolve => {
    // 255 is ssh itself: the connection was lost.
    child.once('close', code => {
      stream.push(null)
      resolve(code === 255 ? null : code)
    })
  })
  let wanted: TerminalSize | undefined
  const resize = async (): Promise<void> => {
    const { rows, columns } = wanted!
    await onNode(`stty rows ${rows} cols ${columns} <${quote(tty!)}`)
    // One at a time: the last size has to win.
    if (wanted?.rows !== rows || wanted.columns !== columns) return resize()
    wanted = undefined
  }
  return {
    stream,
    exit,
    resize: size => {
      const isBusy = wanted !== undefined
      wanted = size
      if (tty !== undefined && !isBusy) void resize()
    },
  }
}
