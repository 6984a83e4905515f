import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { OutputPiece } from '../../src/engine/deputy.ts'
import { deputy } from '../deputy.ts'
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
      const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
      for await (const { pieces } of deputy.follow(id, { signal: stop.signal })) {
        let first = Number.POSITIVE_INFINITY
        for (const piece of pieces) first = Math.min(first, take(buffer, decoders, piece))
        versions.value = bump(versions.value, first, buffer.dropped, buffer.lines.length)
      }
      isDone.value = true
    }
    read().catch(error => {
      if (!stop.signal.aborted) problem.value = error
    })
    return () => stop.abort()
  }, [id])
  return { buffer, versions, isDone, problem }
}

type Buffer = ReturnType<typeof createLineBuffer>

type Decoders = Readonly<Record<'stdout' | 'stderr', TextDecoder>>

const take = (buffer: Buffer, decoders: Decoders, piece: OutputPiece): number =>
  'skipped' in piece
    ? buffer.push(`${piece.skipped.toLocaleString()} bytes were dropped here\n`, 'gap', 0)
    : buffer.push(decoders[piece.stream].decode(piece.data, { stream: true }), piece.stream, piece.at)

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
