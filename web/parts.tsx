import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { JobSummary } from '../src/engine/deputy.ts'
import { AppError } from '../src/jobs/errors.ts'
import { isTerminal, type JobState } from '../src/jobs/states.ts'
import { now } from './clock.ts'
import { formatAge, formatSeconds, formatTime } from './format.ts'

export const Badge = ({ status }: { status: JobState }) => (
  <span class={`badge ${status}`}>
    <i aria-hidden="true" />
    {status}
  </span>
)

export const Age = ({ at }: { at: string }) => (
  <time dateTime={at} title={formatTime(at)}>
    {formatAge(at, now.value)}
  </time>
)

type Timed = Pick<JobSummary, 'status' | 'started_at' | 'duration_seconds'>

/** How long a job took, or has taken so far. */
export const Duration = ({ job }: { job: Timed }) => {
  if (job.duration_seconds !== null) return <>{formatSeconds(job.duration_seconds)}</>
  if (job.started_at === null || isTerminal(job.status)) return null
  const seconds = Math.max(0, Math.floor((now.value - Date.parse(job.started_at)) / 1000))
  return <span class="ticking">{seconds < 60 ? `${seconds} s` : formatSeconds(seconds)}</span>
}

/** Prefix of the labels that Deputy sets for its own use; they are hidden. */
const OURS = 'deputy/'

export const Labels = ({ labels }: { labels: Readonly<Record<string, string>> | undefined }) => (
  <>
    {Object.entries(labels ?? {})
      .filter(([name]) => !name.startsWith(OURS))
      .map(([name, value]) => (
        <span class="label" key={name}>
          {name}={value}
        </span>
      ))}
  </>
)

export const Problem = ({ error }: { error: unknown }) => {
  if (error === undefined) return null
  const message = error instanceof Error ? error.message : String(error)
  const hint = error instanceof AppError ? error.hint : undefined
  return (
    <p class="problem" role="alert">
      {message} {hint !== undefined && <small>{hint}</small>}
    </p>
  )
}

export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="empty">
    <h2>{title}</h2>
    {children}
  </div>
)

export const Command = ({ text }: { text: string }) => (
  <div class="command">
    <code>{text}</code>
    <Copy text={text} />
  </div>
)

export const Copy = ({ text }: { text: string }) => {
  const isDone = useSignal(false)
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text)
    isDone.value = true
    setTimeout(() => {
      isDone.value = false
    }, 1500)
  }
  return (
    <button type="button" class="quiet" onClick={() => void copy()}>
      {isDone.value ? 'Copied' : 'Copy'}
    </button>
  )
}

export interface Question {
  readonly text: string
  readonly action: string
  run(): Promise<void> | void
}

/** Asks before something is lost. */
export const Confirm = ({ question }: { question: Signal<Question | undefined> }) => {
  const { value } = question
  const close = (): void => {
    question.value = undefined
  }
  return (
    <Dialog isOpen={value !== undefined} onClose={close} label="Confirm">
      <p>{value?.text}</p>
      <div class="bar end">
        <button type="button" onClick={close}>
          Back
        </button>
        <button
          type="button"
          class="danger"
          onClick={() => {
            close()
            void value?.run()
          }}
        >
          {value?.action}
        </button>
      </div>
    </Dialog>
  )
}

interface DialogProps {
  readonly isOpen: boolean
  readonly label: string
  onClose(): void
  readonly children: ComponentChildren
}

export const Dialog = ({ isOpen, label, onClose, children }: DialogProps) => {
  const place = useRef<HTMLDialogElement>(null)
  // Before the page is painted: keys that are typed at once belong to the dialog.
  useLayoutEffect(() => {
    if (isOpen) place.current?.showModal()
    else place.current?.close()
  }, [isOpen])
  return (
    <dialog ref={place} aria-label={label} onClose={onClose}>
      {isOpen && children}
    </dialog>
  )
}
