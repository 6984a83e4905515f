import type { JobView } from '../../engine/deputy.ts'

export interface DemoJob {
  readonly title: string
  /** The point of the example, shown to the reader. */
  readonly says: string
  readonly manifest: Readonly<Record<string, unknown>>
  /** The expected result. */
  readonly expect: (job: JobView) => boolean
}

export interface DemoTargets {
  /** A directory of the user that the last job tries to read. */
  readonly userHome: string
  /** A file outside the sandbox that the last job tries to read. */
  readonly secretFile: string
  /** A server on this computer that the last job tries to reach. */
  readonly port: number
}

/** The example jobs. */
export const demoJobs = (targets: DemoTargets): readonly DemoJob[] => [
  {
    title: 'A script with a file, a variable and something to bring back',
    says: 'Files go in, output streams out, artifacts come back.',
    manifest: {
      task: REPORT,
      files: [{ path: 'orders.csv', text: 'apples,3\npears,5\nplums,4\n' }],
      env: { CURRENCY: 'EUR' },
      artifacts: ['report.txt'],
    },
    expect: job => job.status === 'success',
  },
  {
    title: 'A build that fails',
    says: 'Its exit status is its own: deputy run exits with 3 too.',
    manifest: { task: 'echo "compiling…"\necho "main.c:7: error: expected \';\'" >&2\nexit 3' },
    expect: job => job.status === 'failed' && job.exit_code === 3,
  },
  {
    title: 'A job that never ends, with a timeout of 2 seconds',
    says: 'The whole process tree is gone afterwards.',
    manifest: {
      task: 'sleep 1000 &\nfor i in $(seq 60); do echo "still busy ($i)"; sleep 0.8; done',
      timeout: 2,
    },
    expect: job => job.status === 'timeout',
  },
  {
    title: 'A nosy job: your home, your network, other processes',
    says: 'It runs on your computer and sees none of it.',
    manifest: {
      task: NOSY,
      env: { THEIR_HOME: targets.userHome, SECRET_FILE: targets.secretFile, PORT: String(targets.port) },
    },
    expect: job => job.status === 'success',
  },
]

const REPORT = `total=0
while IFS=, read -r fruit count; do
  echo "$fruit: $count"
  total=$((total + count))
  sleep 0.2
done < orders.csv
echo "total: $total $CURRENCY" | tee report.txt`

const NOSY = `leaks=0
try() { what=$1; shift; if "$@" >/dev/null 2>&1; then echo "LEAK: $what"; leaks=1; else echo "could not $what"; fi; }
listed() { test -n "$(ls -A "$1")"; }
connect() { exec 3<>"/dev/tcp/$1/$2"; }
try "list $THEIR_HOME" listed "$THEIR_HOME"
try "read a file of the user" cat "$SECRET_FILE"
try "reach a server on this computer" connect 127.0.0.1 "$PORT"
try "reach the internet" connect 1.1.1.1 53
try "write to /usr" touch /usr/deputy-was-here
echo "I am $(id -un 2>/dev/null || id -u) and see $(ls -d /proc/[0-9]* | wc -l) processes"
exit $leaks`
