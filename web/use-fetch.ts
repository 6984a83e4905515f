import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { EventType } from '../src/jobs/job.ts'
import { deputy } from './deputy.ts'

export interface Fetched<T> {
  readonly data: Signal<T | undefined>
  readonly problem: Signal<unknown>
  reload(): Promise<void>
}

/** An answer of the daemon: read when the component appears or `inputs` change, then as often as asked for. */
export const useFetch = <T>(
  read: (signal?: AbortSignal) => Promise<T>,
  inputs: readonly unknown[] = [],
  everyMs?: number,
): Fetched<T> => {
  const data = useSignal<T | undefined>(undefined)
  const problem = useSignal<unknown>(undefined)
  const reload = async (signal?: AbortSignal): Promise<void> => {
    try {
      data.value = await read(signal)
      problem.value = undefined
    } catch (error) {
      if (!signal?.aborted) problem.value = error
    }
  }
  useEffect(() => {
    const stop = new AbortController()
    void reload(stop.signal)
    const timer = everyMs === undefined ? undefined : setInterval(() => void reload(stop.signal), everyMs)
    return () => {
      stop.abort()
      clearInterval(timer)
    }
  }, inputs)
  return { data, problem, reload: () => reload() }
}

const TOGETHER_MS = 300

interface EventOptions {
  /** Of all jobs unless told otherwise. */
  readonly id?: string
  readonly types?: readonly EventType[]
}

/** Calls back soon after events of jobs; many events in a short time are one call. */
export const useEvents = (onEvents: () => void, { id, types }: EventOptions = {}): void => {
  useEffect(() => {
    const stop = new AbortController()
    let isPlanned = false
    const watch = async (): Promise<void> => {
      for await (const { type } of deputy.followEvents({
        signal: stop.signal,
        ...(id !== undefined && { id }),
      })) {
        if (types !== undefined && !types.includes(type)) continue
        if (isPlanned) continue
        isPlanned = true
        setTimeout(() => {
          isPlanned = false
          if (!stop.signal.aborted) onEvents()
        }, TOGETHER_MS)
      }
    }
    // Ignore errors here: the page's own requests report them.
    watch().catch(() => {})
    return () => stop.abort()
  }, [id])
}
