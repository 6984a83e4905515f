import type { WriteStream } from 'node:tty'

/** A standard stream that waits for slow readers and treats a closed pipe as the end. */
export interface Writer {
  readonly isTTY: boolean
  readonly columns: number
  /** Resolves when there is room for more. */
  write(data: string | Uint8Array): Promise<void>
  /** Aborted when the reader has gone, as with `| head`. */
  readonly closed: AbortSignal
}

export const createWriter = (stream: NodeJS.WriteStream | WriteStream): Writer => {
  const gone = new AbortController()
  // Without a listener, a closed pipe would end the program with a stack trace.
  stream.on('error', () => gone.abort(new PipeClosed()))
  return {
    isTTY: stream.isTTY === true,
    get columns() {
      return stream.columns || 80
    },
    closed: gone.signal,
    write: data => {
      gone.signal.throwIfAborted()
      return new Promise((resolve, reject) => {
        stream.write(data, error => {
          if (!error) return resolve()
          gone.abort(new PipeClosed())
          reject(gone.signal.reason)
        })
      })
    },
  }
}

/** The reader closed the pipe. Not an error. */
export class PipeClosed extends Error {
  override name = 'PipeClosed'
}
