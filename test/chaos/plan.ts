import { createHash } from 'node:crypto'
import type { Random } from './random.ts'

/** One job and all that must come of it. */
export interface Plan {
  readonly key: string
  readonly provider: string
  readonly kind: Kind
  readonly manifest: Readonly<Record<string, unknown>>
  readonly status: 'success' | 'failed' | 'cancelled' | 'timeout'
  readonly stdout: string
  readonly stderr: string
  readonly exitCode: number | null
  /** Path to sha256. */
  readonly artifacts: ReadonlyMap<string, string>
  /** Asked to end so long after it was acknowledged. */
  readonly cancelMs: number | undefined
}

type Kind = 'print' | 'instant' | 'large' | 'fail' | 'cancel' | 'timeout'

const KINDS: readonly { readonly kind: Kind; readonly weight: number }[] = [
  { kind: 'print', weight: 8 },
  { kind: 'instant', weight: 4 },
  { kind: 'large', weight: 2 },
  { kind: 'fail', weight: 1 },
  { kind: 'cancel', weight: 1 },
  { kind: 'timeout', weight: 1 },
]

interface PlanOptions {
  readonly key: string
  readonly provider: string
  readonly place: Readonly<Record<string, unknown>>
  /** Shell code that counts the run. */
  readonly entry: string
  readonly random: Random
}

export const planJob = ({ key, provider, place, entry, random }: PlanOptions): Plan => {
  const { kind } = random.weighted(KINDS)
  const endless = kind === 'cancel' || kind === 'timeout'
  const lines = { print: random.integer(5, 120), instant: 1, large: 20_000, fail: 5, cancel: 1, timeout: 1 }[
    kind
  ]
  const pause = kind === 'print' ? random.pick([0.01, 0.03, 0.1]) : 0
  // A few contents that many jobs share, and one of its own: deleting one job must not take the file of another.
  const contents = new Map(
    endless || kind === 'instant'
      ? []
      : [
          ['shared.txt', `shared ${random.integer(1, 3)}\n`],
          ['own.txt', `${key}\n`],
        ],
  )
  const exitCode = kind === 'fail' ? 7 : 0
  const task = [
    entry,
    kind === 'large'
      ? `seq -f "${key} %.0f" ${lines}`
      : `i=0; while [ $i -lt ${lines} ]; do i=$((i+1)); echo "${key} $i"; ${pause === 0 ? '' : `[ $((i % 5)) != 0 ] || sleep ${pause}; `}done`,
    `echo "${key} error" >&2`,
    // A full disk is that of the host's jobs, too.
    ...[...contents].map(
      ([path, text]) => `until { printf '%s' '${text}' > ${path}; } 2>/dev/null; do sleep 0.1; done`,
    ),
    endless ? 'sleep 600' : `exit ${exitCode}`,
  ].join('\n')
  return {
    key,
    provider,
    kind,
    manifest: {
      ...place,
      task,
      timeout: kind === 'timeout' ? 3 : 300,
      retries: 10,
      idempotency_key: key,
      labels: { chaos: key },
      ...(contents.size > 0 && { artifacts: [...contents.keys()] }),
    },
    status: {
      print: 'success',
      instant: 'success',
      large: 'success',
      fail: 'failed',
      cancel: 'cancelled',
      timeout: 'timeout',
    }[kind] as Plan['status'],
    stdout: Array.from({ length: lines }, (_, index) => `${key} ${index + 1}\n`).join(''),
    stderr: `${key} error\n`,
    exitCode: endless ? null : exitCode,
    artifacts: new Map([...contents].map(([path, text]) => [path, sha256(text)])),
    cancelMs: kind === 'cancel' ? random.between(0, 4000) : undefined,
  }
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
