import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { WirePage, WirePiece } from '../../src/client/wire-output.ts'
import { download, follow } from '../api.ts'
import { useKeys } from '../keys.ts'
import { Problem } from '../parts.tsx'
import { place, setQuery } from '../router.ts'
import { BlockView } from './block.tsx'
import { BLOCK_LINES, createLineBuffer, type Line, textOf } from './line-buffer.ts'

const ERROR = /\b(error|fatal|panic|exception|traceback|failed|failure)\b/i

/** The output of a job, as it comes. */
export const LogView = ({ id }: { id: string }) => {
  const buffer = useMemo(createLineBuffer, [])
  /** Counts the changes of each block of lines: only those that changed are drawn again. */
  const versions = useSignal<ReadonlyMap<number, number>>(new Map())
  const isDone = useSignal(false)
  const problem = useSignal<unknown>(undefined)
  const search = useSignal('')
  const isWrapped = useSignal(true)
  const hasTimes = useSignal(false)
  const box = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const wanted = Number(place.value.query.get('line') ?? 0)

  useEffect(() => {
    const stop = new AbortController()
    const read = async (): Promise<void> => {
      for await (const { event, data } of follow(`/api/jobs/${id}/output/stream`, stop.signal)) {
        if (event === 'output') {
          const page: WirePage = JSON.parse(data)
          let first = Number.POSITIVE_INFINITY
          for (const piece of page.pieces) first = Math.min(first, take(buffer, piece))
          versions.value = bump(versions.value, first, buffer.dropped, buffer.lines.length)
        } else if (event === 'end') isDone.value = true
      }
    }
    read().catch(error => {
      if (!stop.signal.aborted) problem.value = error
    })
    return () => stop.abort()
  }, [id])

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
      <div class="bar tools">
        <input
          type="search"
          aria-label="Search the log"
          placeholder="Search the log  /"
          onInput={event => {
            search.value = event.currentTarget.value
          }}
          onKeyDown={event => {
            if (event.key === 'Enter') step(event.shiftKey ? -1 : 1)
            if (event.key === 'Escape') event.currentTarget.blur()
          }}
        />
        {needle !== '' && <span class="soft">{hits.length} lines</span>}
        <button type="button" class="quiet" onClick={firstError}>
          First error
        </button>
        <Toggle label="Wrap" state={isWrapped} />
        <Toggle label="Times" state={hasTimes} />
        <button
          type="button"
          class="quiet"
          onClick={() => void download(`/api/jobs/${id}/output?raw=true`, `${id}.log`)}
        >
          Download
        </button>
      </div>
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

type Buffer = ReturnType<typeof createLineBuffer>

const take = (buffer: Buffer, piece: WirePiece): number =>
  'skipped' in piece
    ? buffer.push(`${piece.skipped.toLocaleString()} bytes were dropped here\n`, 'gap', '')
    : buffer.push(piece.text ?? decode(piece.base64 ?? ''), piece.stream, piece.at)

const decode = (base64: string): string =>
  new TextDecoder().decode(Uint8Array.from(atob(base64), char => char.charCodeAt(0)))

const blockOf = (number: number): number => Math.floor((number - 1) / BLOCK_LINES)

const bump = (
  versions: ReadonlyMap<number, number>,
  first: number,
  dropped: number,
  length: number,
): ReadonlyMap<number, number> => {
  const next = new Map([...versions].filter(([block]) => block >= blockOf(dropped + 1)))
  if (length === 0) return next
  for (let block = blockOf(Math.max(first, dropped + 1)); block <= blockOf(dropped + length); block++)
    next.set(block, (next.get(block) ?? 0) + 1)
  return next
}

const blockLines = ({ lines, dropped }: Buffer, block: number): readonly Line[] => {
  const from = block * BLOCK_LINES - dropped
  return lines.slice(Math.max(0, from), from + BLOCK_LINES)
}
