import { signal } from '@preact/signals'
import { createCalls } from '../src/client/create-calls.ts'
import { createFetchTransport } from '../src/client/fetch-transport.ts'
import type { Download } from '../src/client/file-calls.ts'
import { dropSession, session } from './session.ts'

/** Whether the daemon answers; streams and calls keep it up to date. */
export const isConnected = signal(true)

const RETRY_MS = 1000

const transport = createFetchTransport({
  headers: () => ({ authorization: `Bearer ${session.value ?? ''}`, 'x-deputy-origin': 'console' }),
  onAnswer: status => {
    isConnected.value = status !== undefined
    if (status === 401) dropSession('The session has ended.')
  },
})

/** The client of this page: the calls of the TypeScript client, over `fetch`. */
export const deputy = createCalls({
  transport,
  // A page shows at once that the daemon is away, and reads again later.
  retry: transport.json,
  revive: async () => {
    isConnected.value = false
    await new Promise(resolve => setTimeout(resolve, RETRY_MS))
  },
  // A stream lasts as long as its page.
  giveUpMs: Number.POSITIVE_INFINITY,
})

export const readBytes = async ({ bytes }: Pick<Download, 'bytes'>): Promise<Blob> => {
  const parts: BlobPart[] = []
  for await (const chunk of bytes) parts.push(chunk as Uint8Array<ArrayBuffer>)
  return new Blob(parts)
}

/** A link cannot send the session; so the file is fetched and handed over as a blob. */
export const saveFile = async (download: Promise<Download>, name: string): Promise<void> => {
  const url = URL.createObjectURL(await readBytes(await download))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
