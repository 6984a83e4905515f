import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { JobSummary } from '../../src/engine/deputy.ts'
import { deputy } from '../deputy.ts'

const MAX_MEMBERS = 1000

/** The members of the batches that the user has opened. They are read again when the list changes. */
export const useBatches = (jobs: readonly JobSummary[]) => {
  const opened = useSignal<ReadonlyMap<string, readonly JobSummary[]>>(new Map())
  const read = async (id: string): Promise<readonly JobSummary[]> =>
    (await deputy.list({ parent: id, sort: 'oldest', limit: MAX_MEMBERS })).jobs
  const toggleBatch = async (id: string): Promise<void> => {
    const isOpen = opened.value.has(id)
    const members = isOpen ? [] : await read(id)
    const next = new Map(opened.value)
    if (isOpen) next.delete(id)
    else next.set(id, members)
    opened.value = next
  }
  useEffect(() => {
    const refresh = async (): Promise<void> => {
      const next = new Map<string, readonly JobSummary[]>()
      for (const id of opened.value.keys()) next.set(id, await read(id))
      opened.value = next
    }
    // The list itself shows what is wrong with the connection.
    if (opened.value.size > 0) refresh().catch(() => {})
  }, [jobs])
  return { opened: opened.value, toggleBatch }
}
