import { spawn } from 'node:child_process'

export interface ProgramResult {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** Killed by us, on timeout or because the call was cancelled. */
  readonly killed: boolean
  readonly stdout: string
  readonly stderr: string
  readonly truncated: boolean
}

export interface RunOptions {
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly maxBytes?: number
}

/** Runs a program to its end. Keeps only the tail of each output stream, so that memory stays bounded. */
export const runProgram = (
  program: string,
  argv: readonly string[],
  options: RunOptions,
): Promise<ProgramResult> => {
  const { timeoutMs, signal, maxBytes = 64 * 1024 } = options
  return new Promise((resolve, reject) => {
    const child = spawn(program, argv, { stdio: ['ignore', 'pipe', 'pipe'] })
    const stdout = tail(maxBytes)
    const stderr = tail(maxBytes)
    let killed = false
    const kill = () => {
      killed = true
      child.kill('SIGKILL')
    }
    const timer = setTimeout(kill, timeoutMs)
    signal.addEventListener('abort', kill, { once: true })
    if (signal.aborted) kill()
    child.stdout.on('data', stdout.add)
    child.stderr.on('data', stderr.add)
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', kill)
    }
    child.on('error', error => {
      done()
      reject(error)
    })
    child.on('close', (code, by) => {
      done()
      const truncated = stdout.cut() || stderr.cut()
      resolve({ code, signal: by, killed, stdout: stdout.text(), stderr: stderr.text(), truncated })
    })
  })
}

const tail = (maxBytes: number) => {
  let chunks: Buffer[] = []
  let size = 0
  let cut = false
  return {
    add(chunk: Buffer) {
      chunks.push(chunk)
      size += chunk.length
      if (size < 2 * maxBytes) return
      chunks = [Buffer.concat(chunks).subarray(-maxBytes)]
      size = maxBytes
      cut = true
    },
    cut: () => cut || size > maxBytes,
    text: () => Buffer.concat(chunks).subarray(-maxBytes).toString('utf8'),
  }
}
