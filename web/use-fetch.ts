import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { askJson, follow } from './api.ts'

export interface Fetched<T> {
  readonly data: Signal<T | undefined>
  readonly problem: Signal<unknown>
  reload(): Promise<void>
}

/** What a path answers: read when the component appears, then as often as asked for. */
export const useFetch = <T>(path: string, everyMs?: number): Fetched<T> => {
  const data = useSignal<T | undefined>(undefined)
  const problem = useSignal<unknown>(undefined)
  const reload = async (signal?: AbortSignal): Promise<void> => {
    try {
      data.value = await askJson<T>(path, { signal })
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
  }, [path])
  return { data, problem, reload: () => reload() }
}

const TOGETHER_MS = 300

/** Calls back soon after events of a stream; many events in a short time are one call. */
export const useEvents = (path: string, onEvents: () => void, types?: readonly string[]): void => {
  useEffect(() => {
    const stop = new AbortController()
    let isPlanned = false
    const watch = async (): Promise<void> => {
      for await (const { event } of follow(path, stop.signal)) {
        if (types !== undefined && !types.includes(event)) continue
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
  }, [path])
}
