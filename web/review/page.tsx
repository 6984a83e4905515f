import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { ReviewAnswer } from '../../src/client/review-calls.ts'
import type { JobResult } from '../../src/engine/deputy.ts'
import { deputy, saveFile } from '../deputy.ts'
import { formatSize } from '../format.ts'
import { useKeys } from '../keys.ts'
import { Badge, Command, Empty, Problem } from '../parts.tsx'
import { place, setQuery } from '../router.ts'
import { useFetch } from '../use-fetch.ts'
import { DecisionForm } from './decision.tsx'
import { DiffView, type Layout } from './diff-view.tsx'
import { FileTree } from './file-tree.tsx'
import type { FilePatch } from './patch.ts'
import { readPatch } from './read-patch.ts'

const MAX_BYTES = 2 * 1024 * 1024
/** A file with more lines opens on a click. */
const MANY_LINES = 1500

/** What a job changed in its workspace, and the decision on it. */
export const ReviewPage = ({ id }: { id: string }) => {
  const result = useFetch(signal => deputy.result(id, { maxBytes: 0, signal }), [id])
  const job = result.data.value
  if (job === undefined)
    return result.problem.value === undefined ? (
      <div class="skeleton" aria-hidden="true" />
    ) : (
      <>
        <h1 class="hidden">Review</h1>
        <Problem error={result.problem.value} />
        <a href={`#/jobs/${id}`}>The job</a>
      </>
    )
  const size = job.patch?.size ?? 0
  return (
    <article class="review">
      <header>
        <h1>
          <Badge status={job.status} />
          <span>{job.task || id}</span>
        </h1>
        <p class="bar soft">
          <a href={`#/jobs/${id}`}>Job {id.slice(0, 8)}</a>
          {job.patch !== null && (
            <button
              type="button"
              class="quiet"
              onClick={() => void saveFile(deputy.openPatch(id), `${id}.patch`)}
            >
              Download {formatSize(size)}
            </button>
          )}
        </p>
      </header>
      {job.patch === null ? (
        <Empty title="No patch">
          <p>To get one, pass a workspace and --apply:</p>
          <Command text="deputy run --workspace . --apply -- make format" />
        </Empty>
      ) : size === 0 ? (
        <Empty title="The job changed nothing" />
      ) : size > MAX_BYTES ? (
        <Empty title="Too large to show here">
          <Command text={`deputy patch ${id}`} />
        </Empty>
      ) : (
        <Changes job={job} />
      )}
    </article>
  )
}

const Changes = ({ job }: { job: JobResult }) => {
  const id = job.job_id
  const files = useSignal<readonly FilePatch[]>([])
  const review = useSignal<ReviewAnswer | undefined>(undefined)
  const problem = useSignal<unknown>(undefined)
  const active = useSignal(0)
  const layout: Layout = place.value.query.get('layout') === 'split' ? 'split' : 'inline'

  useEffect(() => {
    const read = async (): Promise<void> => {
      const [patch, state] = await Promise.all([readPatch(id), deputy.review(id)])
      files.value = patch
      review.value = state
    }
    read().catch(error => {
      problem.value = error
    })
  }, [id])

  const viewed = new Set(review.value?.viewed)
  const mark = async (path: string, isViewed: boolean): Promise<void> => {
    try {
      review.value = await deputy.markViewed(id, path, isViewed)
    } catch (error) {
      problem.value = error
    }
  }
  const open = (index: number): void => {
    const file = files.value[index]
    if (file === undefined) return
    active.value = index
    document.getElementById(`file-${index}`)?.scrollIntoView({ block: 'start' })
  }
  useKeys({
    j: () => open(active.value + 1),
    k: () => open(active.value - 1),
    v: () => {
      const path = files.value[active.value]?.path
      if (path !== undefined) void mark(path, !viewed.has(path))
    },
    s: () => setQuery({ layout: layout === 'split' ? '' : 'split' }),
  })

  if (review.value === undefined) return <Problem error={problem.value} />
  return (
    <>
      <DecisionForm
        job={job}
        review={review.value}
        fileCount={files.value.length}
        onChange={next => {
          review.value = next
        }}
      />
      <Problem error={problem.value} />
      <div class="bar">
        <strong role="status">
          {files.value.filter(file => viewed.has(file.path)).length} of {files.value.length} viewed
        </strong>
        <fieldset class="choice" aria-label="Layout">
          {(['inline', 'split'] as const).map(name => (
            <button
              type="button"
              key={name}
              aria-pressed={layout === name}
              onClick={() => setQuery({ layout: name === 'inline' ? '' : name })}
            >
              {name === 'inline' ? 'Inline' : 'Side by side'}
            </button>
          ))}
        </fieldset>
      </div>
      <div class="review-columns">
        <FileTree files={files.value} viewed={viewed} active={active.value} onOpen={open} />
        <div class="patches">
          {files.value.map((file, index) => (
            <File
              key={file.path}
              file={file}
              index={index}
              layout={layout}
              isViewed={viewed.has(file.path)}
              onView={isViewed => void mark(file.path, isViewed)}
            />
          ))}
        </div>
      </div>
    </>
  )
}

interface FileProps {
  readonly file: FilePatch
  readonly index: number
  readonly layout: Layout
  readonly isViewed: boolean
  onView(isViewed: boolean): void
}

/** A viewed file is folded, until its name is clicked. */
const File = ({ file, index, layout, isViewed, onView }: FileProps) => {
  const opened = useSignal<boolean | undefined>(undefined)
  const isOpen = opened.value ?? (!isViewed && file.lines.length <= MANY_LINES)
  return (
    <section class="patch" id={`file-${index}`} aria-label={file.path}>
      <h2 class="bar">
        <button
          type="button"
          class="link"
          aria-expanded={isOpen}
          onClick={() => {
            opened.value = !isOpen
          }}
        >
          {file.path}
        </button>
        <span class="plus">+{file.added}</span>
        <span class="minus">−{file.removed}</span>
        <label class="viewed-mark">
          <input
            type="checkbox"
            checked={isViewed}
            onChange={event => {
              opened.value = undefined
              onView(event.currentTarget.checked)
            }}
          />
          Viewed
        </label>
      </h2>
      {isOpen && <DiffView file={file} layout={layout} />}
    </section>
  )
}
