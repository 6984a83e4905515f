import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { deputy, saveFile } from '../deputy.ts'
import { useKeys } from '../keys.ts'
import { Problem } from '../parts.tsx'
import { place, setQuery } from '../router.ts'
import { BlockView } from './block.tsx'
import { BLOCK_LINES, type Line, textOf } from './line-buffer.ts'
import { useOutput } from './use-output.ts'

const ERROR = /\b(error|fatal|panic|exception|traceback|failed|failure)\b/i

/** The output of a job, as it comes. */
export const LogView = ({ id }: { id: string }) => {
  const { buffer, versions, isDone, problem } = useOutput(id)
  const search = useSignal('')
  const isWrapped = useSignal(true)
  const hasTimes = useSignal(false)
  const box = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const wanted = Number(place.value.query.get('line') ?? 0)

  const show = (number: number): void =>
    box.current?.querySelector(`[data-line="${number}"]`)?.scrollIntoView({ block: 'center' })
  const goTo = (line: Line | undefined): void => {
    if (line === undefined) return
    isAtEnd.current = false
    setQuery({ line: String(line.number) })
    show(line.number)
  }
  const isWantedHere = buffer.lines.length + buffer.dropped >= wanted
  useEffect(() => {
    const element = box.current
    if (element === null) return
    if (wanted > 0 && isWantedHere) show(wanted)
    else if (isAtEnd.current) element.scrollTop = element.scrollHeight
  }, [versions.value, isWantedHere])

  const needle = search.value.toLowerCase()
  const hits = useMemo(
    () => (needle === '' ? [] : buffer.lines.filter(line => textOf(line).toLowerCase().includes(needle))),
    [needle, versions.value],
  )
  const step = (by: number): void => {
    if (hits.length === 0) return
    const at = hits.findIndex(line => line.number === wanted)
    goTo(hits[at === -1 ? 0 : (at + by + hits.length) % hits.length])
  }
  const firstError = (): void =>
    goTo(
      buffer.lines.find(line => ERROR.test(textOf(line))) ??
        buffer.lines.find(line => line.stream === 'stderr'),
    )
  useKeys({
    w: () => {
      isWrapped.value = !isWrapped.value
    },
    e: firstError,
  })

  const blocks = [...versions.value].filter(([block]) => (block + 1) * BLOCK_LINES > buffer.dropped)
  const found = new Set(hits.map(line => line.number))
  return (
    <div class="log">
      <Tools
        id={id}
        hits={needle === '' ? undefined : hits.length}
        toggles={[
          ['Wrap', isWrapped],
          ['Times', hasTimes],
        ]}
        onSearch={text => {
          search.value = text
        }}
        onStep={step}
        onFirstError={firstError}
      />
      <Problem error={problem.value} />
      <div
        ref={box}
        class={`output${isWrapped.value ? ' wrap' : ''}${hasTimes.value ? ' times' : ''}`}
        role="log"
        aria-label="Output"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
        tabIndex={0}
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
          isAtEnd.current = scrollHeight - scrollTop - clientHeight < 40
        }}
      >
        {buffer.dropped > 0 && (
          <p class="soft">The first {buffer.dropped.toLocaleString()} lines are in the download.</p>
        )}
        {blocks.map(([block, version]) => (
          <BlockView
            key={block}
            jobId={id}
            lines={blockLines(buffer, block)}
            version={version}
            marked={wanted}
            found={found}
          />
        ))}
        {buffer.lines.length === 0 && (
          <p class="soft">{isDone.value ? 'The job printed nothing.' : 'Waiting for output…'}</p>
        )}
      </div>
    </div>
  )
}

interface ToolsProps {
  id: string
  /** How many lines the search has found; undefined without a search. */
  hits: number | undefined
  toggles: readonly (readonly [label: string, state: { value: boolean }])[]
  onSearch(text: string): void
  onStep(by: number): void
  onFirstError(): void
}

const Tools = ({ id, hits, toggles, onSearch, onStep, onFirstError }: ToolsProps) => (
  <div class="bar tools">
    <input
      type="search"
      aria-label="Search the log"
      placeholder="Search the log  /"
      onInput={event => {
        onSearch(event.currentTarget.value)
      }}
      onKeyDown={event => {
        if (event.key === 'Enter') onStep(event.shiftKey ? -1 : 1)
        if (event.key === 'Escape') event.currentTarget.blur()
      }}
    />
    {hits !== undefined && <span class="soft">{hits} lines</span>}
    <button type="button" class="quiet" onClick={onFirstError}>
      First error
    </button>
    {toggles.map(([label, state]) => (
      <Toggle key={label} label={label} state={state} />
    ))}
    <button type="button" class="quiet" onClick={() => void saveFile(deputy.rawOutput(id), `${id}.log`)}>
      Download
    </button>
  </div>
)

const Toggle = ({ label, state }: { label: string; state: { value: boolean } }) => (
  <button
    type="button"
    class="quiet"
    aria-pressed={state.value}
    onClick={() => {
      state.value = !state.value
    }}
  >
    {label}
  </button>
)

type Buffer = ReturnType<typeof useOutput>['buffer']

const blockLines = ({ lines, dropped }: Buffer, block: number): readonly Line[] => {
  const from = block * BLOCK_LINES - dropped
  return lines.slice(Math.max(0, from), from + BLOCK_LINES)
}
