import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { isTerminal } from '../../src/jobs/states.ts'
import { deputy } from '../deputy.ts'
import { formatCost, formatSeconds } from '../format.ts'
import { Badge, Confirm, Duration, Empty, Problem, type Question } from '../parts.tsx'
import { readPatch } from '../review/read-patch.ts'
import { go, place } from '../router.ts'
import { useEvents, useFetch } from '../use-fetch.ts'
import { testOutcome } from './test-outcome.ts'

const OUTPUT_BYTES = 2048
const MAX_JOBS = 12

/** Jobs with the same task side by side: what each printed, changed and cost. One of them is picked. */
export const ComparePage = () => {
  const ids = (place.value.query.get('jobs') ?? '')
    .split(',')
    .filter(id => id !== '')
    .slice(0, MAX_JOBS)
  const withPatch = useSignal<ReadonlySet<string>>(new Set())
  const question = useSignal<Question | undefined>(undefined)
  const problem = useSignal<unknown>(undefined)
  const changes = useSignal(0)
  // One stream for all: a browser has six connections to the daemon.
  const countChange = (): void => {
    changes.value += 1
  }
  useEvents(countChange, { types: ['state'] })

  const pick = async (id: string, others: readonly string[]): Promise<void> => {
    try {
      for (const other of others)
        await deputy.decide(other, { action: 'reject', comment: `Job ${id} was picked instead.` })
      go(`#/review/${id}`)
    } catch (error) {
      problem.value = error
    }
  }
  const onPick = (id: string): void => {
    const others = ids.filter(other => other !== id && withPatch.value.has(other))
    question.value = {
      text: `Pick job ${id.slice(0, 8)} and reject the changes of ${others.length} others?`,
      action: 'Pick',
      run: () => pick(id, others),
    }
  }
  if (ids.length < 2)
    return (
      <Empty title="Choose at least two jobs">
        <p>
          Select them in <a href="#/jobs">the list</a>, then press Compare.
        </p>
      </Empty>
    )
  return (
    <section class="compare">
      <h1>{ids.length} jobs side by side</h1>
      <Problem error={problem.value} />
      <div class="members">
        {ids.map(id => (
          <Member
            key={id}
            id={id}
            changes={changes.value}
            onPatch={() => {
              withPatch.value = new Set([...withPatch.value, id])
            }}
            onPick={() => onPick(id)}
          />
        ))}
      </div>
      <Confirm question={question} />
    </section>
  )
}

interface ResultProps {
  readonly id: string
  onPatch(): void
  onPick(): void
}

interface MemberProps extends ResultProps {
  /** Grows when jobs change. */
  readonly changes: number
}

const Member = ({ id, changes, onPatch, onPick }: MemberProps) => {
  const job = useFetch(signal => deputy.get(id, signal), [id])
  const view = job.data.value
  useEffect(() => {
    if (view !== undefined && !isTerminal(view.status)) void job.reload()
  }, [changes])
  if (view === undefined) return <Problem error={job.problem.value} />
  return (
    <article class="card member">
      <h2>
        <a href={`#/jobs/${id}`}>{view.task || id}</a>
      </h2>
      <p class="bar">
        <Badge status={view.status} />
        <span class="soft">
          {view.agent}, {view.where ?? view.runtime}
        </span>
      </p>
      {isTerminal(view.status) ? (
        <MemberResult id={id} onPatch={onPatch} onPick={onPick} />
      ) : (
        <p class="soft">
          <Duration job={view} /> {view.progress}
        </p>
      )}
    </article>
  )
}

const MemberResult = ({ id, onPatch, onPick }: ResultProps) => {
  const { data, problem } = useFetch(signal => deputy.result(id, { maxBytes: OUTPUT_BYTES, signal }), [id])
  const result = data.value
  const changed = useSignal<string | undefined>(undefined)
  useEffect(() => {
    if (!result?.patch) return
    onPatch()
    const read = async (): Promise<void> => {
      const files = await readPatch(id)
      const sum = (key: 'added' | 'removed'): number => files.reduce((total, file) => total + file[key], 0)
      changed.value = `${files.length} ${files.length === 1 ? 'file' : 'files'}, +${sum('added')} −${sum('removed')}`
    }
    read().catch(error => {
      problem.value = error
    })
  }, [result])
  if (result === undefined) return <Problem error={problem.value} />
  const { usage } = result
  const facts = [
    ['Exit', result.signal ?? result.exit_code],
    ['Took', result.duration_seconds === null ? null : formatSeconds(result.duration_seconds)],
    ['Tests', testOutcome(result.output) ?? 'not seen in the output'],
    ['Changes', result.patch === null ? 'none asked for' : changed.value],
    ['Cost', usage?.costUsd == null ? null : formatCost(usage.costUsd)],
    ['Tokens', usage === null ? null : (usage.inputTokens + usage.outputTokens).toLocaleString()],
  ] as const
  return (
    <>
      <Problem error={problem.value} />
      <dl class="facts">
        {facts
          .filter(([, value]) => value !== null && value !== undefined)
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
      <pre class="code">{result.output === '' ? 'No output.' : result.output}</pre>
      {result.patch !== null && (
        <p class="bar">
          <a class="button" href={`#/review/${id}`}>
            Review
          </a>
          <button type="button" class="primary" onClick={onPick}>
            Pick this one
          </button>
        </p>
      )}
    </>
  )
}
