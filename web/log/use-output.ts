import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { WirePage, WirePiece } from '../../src/client/wire-output.ts'
import { follow } from '../api.ts'
import { BLOCK_LINES, createLineBuffer } from './line-buffer.ts'

/** Follows the output of a job into a buffer of lines. */
export const useOutput = (id: string) => {
  const buffer = useMemo(createLineBuffer, [])
  /** Counts the changes of each block of lines: only those that changed are drawn again. */
  const versions = useSignal<ReadonlyMap<number, number>>(new Map())
  const isDone = useSignal(false)
  const problem = useSignal<unknown>(undefined)

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
  return { buffer, versions, isDone, problem }
}

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
