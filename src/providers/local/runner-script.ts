import { shellQuote as quote } from '../../runner/shell-words.ts'

/**
 * The runner is a plain `sh` inside the machine that reads shell commands of the shim from a socket. Fd 3 carries
 * status lines out, fd 4 data in, fd 5 data out, fd 6 is the job's stderr. All are sockets, which a job cannot open
 * through /proc. A job that forges messages anyway can only falsify its own result; everything read is bounded.
 *
 * The runner reads no commands while a job runs, so a second shell reads those that open sessions. Its stdin is the
 * socket that is fd 6 at first. It is started with setsid, not with &: background processes of a shell ignore SIGINT.
 */
export const RUNNER_PROLOGUE = `umask 022
setsid -f /bin/sh <&6 >/dev/null 2>&1 4<&- 5>&- 6<&-
exec 6>&2 2>/dev/null
echo "ready $$" >&3
`

/** The second shell reports its process id, which does not belong to a job. */
export const SESSIONS_PROLOGUE = 'umask 022\necho "sessions $$" >&3\n'

export interface JobScriptOptions {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly directory: string
  readonly limits: { readonly files: number; readonly processes?: number; readonly dataBytes?: number }
  /** Kill everything the job left running. Set it only inside a pid namespace. */
  readonly killLeftovers: boolean
}

export const jobScript = (job: JobScriptOptions): string => {
  const lines = [
    // Limits the runner, too: a job that took it over would otherwise have no limit.
    ...processLimit(job.limits.processes),
    '(',
    'exec 2>&6 3>&- 4<&- 5>&- 6>&- </dev/null',
    `cd ${quote(job.directory)} || exit 126`,
    // When memory runs out, the kernel should kill the job, not the runner.
    'echo 500 2>/dev/null >/proc/self/oom_score_adj',
    ...limitLines(job.limits),
    ...Object.entries(job.env).flatMap(([name, value]) =>
      isEnvName(name) ? [`export ${name}=${quote(value)}`] : [],
    ),
    `exec ${job.argv.map(quote).join(' ')}`,
    ') </dev/null',
    'echo "exit $?" >&3',
  ]
  // Low pids exist only in a pid namespace: on the host `kill -9 -1` must never run.
  if (job.killLeftovers) lines.push('[ $$ -le 9 ] && kill -9 -1 2>/dev/null')
  lines.push('echo "settled" >&3', '')
  return lines.join('\n')
}

const limitLines = (limits: JobScriptOptions['limits']): string[] => [
  'ulimit -c 0',
  `ulimit -n ${limits.files} 2>/dev/null`,
  // Applies to one process; `watchUsage` limits the sum.
  ...(limits.dataBytes === undefined ? [] : [`ulimit -d ${Math.ceil(limits.dataBytes / 1024)} 2>/dev/null`]),
]

const isEnvName = (name: string): boolean => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)

/** dash and ash say -p, bash says -u. */
export const processLimit = (processes: number | undefined): string[] =>
  processes === undefined ? [] : [`ulimit -p ${processes} 2>/dev/null || ulimit -u ${processes} 2>/dev/null`]

/** Unpacks a tar of `bytes` bytes that follows on fd 4. */
export const unpackScript = (directory: string, bytes: number, gzip: boolean): string =>
  // Discard what tar leaves unread: the next input follows it.
  `head -c ${bytes} <&4 | { tar -x${gzip ? 'z' : ''}f - -C ${quote(directory)} 2>&5 >/dev/null; code=$?; cat >/dev/null; exit $code; }
echo "unpacked $?" >&3
`

/** Lists everything but directories on fd 5, each record ended by NUL, the list by an empty record. */
export const listScript = (directory: string): string =>
  `(cd ${quote(directory)} && exec find . -xdev ! -type d -printf '%y %s %m %T@ %P\\0') 2>/dev/null >&5 </dev/null
printf '\\0' >&5
`

/** Reads `bytes` bytes of file names from fd 4, sends a tar of the files, then echoes the end mark from fd 4. */
export const packScript = (directory: string, bytes: number, markBytes: number): string =>
  `(cd ${quote(directory)} && head -c ${bytes} <&4 | tar --null -T - --no-recursion --hard-dereference -cf - 2>/dev/null) >&5
head -c ${markBytes} <&4 >&5
`

/** Starts a helper that outlives jobs and reports on fd 3 by itself. */
export const helperScript = (argv: readonly string[]): string =>
  `${argv.map(quote).join(' ')} </dev/null >/dev/null 4<&- 5>&- 6>&- &\n`
