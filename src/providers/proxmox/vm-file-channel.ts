import type { JobHandler } from '../../guest/machine-handler.ts'
import { AppError } from '../../jobs/errors.ts'
import type { Channel, ExchangeHandlers } from '../../runner/channel.ts'
import type { Collection } from '../../runner/collect.ts'
import type { Request } from '../../runner/frames.ts'
import { channelSource } from '../../runner/workspace-source.ts'

export interface VmFileChannelOptions {
  readonly collection: Pick<Collection, 'fetch'>
  /** Whether an earlier daemon has received and stored everything. */
  readonly complete: boolean
  /** Stores the result before the machine is told that nothing more is wanted: it does not send it again. */
  store(): Promise<void>
  /** Called for each chunk and while the daemon works, as a heartbeat. */
  onBytes(): void
}

interface PendingRead {
  readonly paths: readonly string[]
  readonly handlers: ExchangeHandlers
  /** Ends the exchange; with an error, the rest of the tar does not arrive. */
  end(cut?: AppError): void
}

const BEAT_MS = 2000

/**
 * Collects the files of a VM. The machine calls the daemon, not the other way round: it sends the list of its files,
 * and each response names the files to send next. A list that is sent again after a lost connection starts over.
 */
export const createVmFileChannel = ({ collection, store, onBytes, complete }: VmFileChannelOptions) => {
  let last: Promise<unknown> = Promise.resolve()
  let pending: PendingRead | undefined
  let fetching: { readonly done: Promise<void>; readonly abort: AbortController } | undefined
  let asked = () => {}
  let isComplete = complete

  /** Serializes calls, even if a machine sends several at once. */
  const queue = <T>(step: () => Promise<T>): Promise<T> => {
    const result = last.then(step)
    last = result.catch(() => {})
    return result
  }

  const channelFor = (list: Buffer): Channel => ({
    exchange: async ([request], handlers) => {
      handlers.signal.throwIfAborted()
      if (request?.kind === 'files') handlers.onAnswer({ kind: 'files', workspace: request.workspace }, list)
      else if (request?.kind === 'read') return { cut: await read(request, handlers), sent: true }
      return { cut: undefined, sent: true }
    },
  })

  const read = (
    { argv }: Extract<Request, { kind: 'read' }>,
    handlers: ExchangeHandlers,
  ): Promise<AppError | undefined> =>
    new Promise((resolve, reject) => {
      const onAbort = () => reject(handlers.signal.reason)
      handlers.signal.addEventListener('abort', onAbort, { once: true })
      const end = (cut?: AppError) => {
        handlers.signal.removeEventListener('abort', onAbort)
        resolve(cut)
      }
      pending = { paths: argv, handlers, end }
      asked()
    })

  /** Resolves with the files to send next; none when everything has arrived and is stored. */
  const next = async ({ done }: NonNullable<typeof fetching>): Promise<readonly string[]> => {
    const beat = setInterval(onBytes, BEAT_MS)
    try {
      const wanted = new Promise<void>(resolve => {
        asked = resolve
      })
      if (pending === undefined) await Promise.race([done, wanted])
      return pending?.paths ?? []
    } finally {
      clearInterval(beat)
    }
  }

  const files: JobHandler['files'] = list =>
    queue(async () => {
      if (isComplete) return []
      fetching?.abort.abort(new AppError('unavailable', 'The machine sent its list of files again.'))
      await fetching?.done.catch(() => {})
      pending = undefined
      const abort = new AbortController()
      const done = collection
        .fetch(channelSource({ channel: channelFor(list), workspace: 'vm', signal: abort.signal }))
        .then(store)
        .then(() => {
          isComplete = true
        })
      done.catch(() => {}) // The call that waits for it throws the same error.
      fetching = { done, abort }
      return next(fetching)
    })

  const receive: JobHandler['receive'] = tar =>
    queue(async () => {
      if (isComplete) return []
      // The list died with the daemon that asked for these files; the machine answers this error with a new list.
      if (pending === undefined || fetching === undefined)
        throw new AppError('conflict', 'The list of files is unknown. Send it again.')
      const { handlers, end } = pending
      pending = undefined
      try {
        for await (const chunk of tar) {
          onBytes()
          handlers.signal.throwIfAborted()
          handlers.onAnswer({ kind: 'tar', workspace: 'vm' }, Buffer.from(chunk))
          await handlers.ready?.()
        }
        end()
      } catch (cause) {
        end(new AppError('unavailable', 'The connection was lost while files were sent.', { cause }))
        // If the collection has failed, throw its error instead.
        await fetching.done
      }
      return next(fetching)
    })

  return { files, receive }
}
