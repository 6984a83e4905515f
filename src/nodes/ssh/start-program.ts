import type { ChildProcessWithoutNullStreams } from 'node:child_process'

/** A program on a node, from the moment it reads its stdin. */
export interface Program {
  readonly child: ChildProcessWithoutNullStreams
  /** Its process group on the node. */
  readonly pid: number
  /** Its terminal on the node. */
  readonly tty: string | undefined
}

/**
 * Constant, and simple enough for any login shell. The stdin of this ssh is a pipe, so a terminal on the node starts
 * with all modes off: `stty` sets them. Without `-icanon` the terminal would cut a script that is longer than a line.
 */
export const READ_PROGRAM = `exec sh -c 'stty sane -icanon -echo min 1 time 0 2>/dev/null; echo deputy-ready; IFS= read -r s; eval "$(printf %b "$s")"'`

const READY = /^deputy-ready\r?\n/m
const STARTED = /^deputy-program (\d+) ([^\r\n]*)\r?\n/m
const MAX_BANNER = 64 * 1024

export interface ProgramSpec {
  /** A POSIX sh program. It is sent through stdin, so that no part of it appears in a process list. */
  readonly script: string
  /** The size of its terminal; without one, stdin and stdout are pipes. */
  readonly terminal?: { readonly columns: number; readonly rows: number } | undefined
  readonly signal: AbortSignal
}

/** Sends the script and waits until it runs: input that arrives earlier would be read in the wrong terminal mode. */
export const startProgram = async (
  child: ChildProcessWithoutNullStreams,
  { script, terminal, signal }: ProgramSpec,
  toError: (stderr: string) => Error,
): Promise<Program> => {
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-MAX_BANNER)
  })
  const readLine = lineReader(child, signal, () => toError(stderr))
  const begin =
    terminal === undefined
      ? 'exec 2>&1'
      : `stty sane cs8 38400 2>/dev/null; stty iutf8 2>/dev/null; stty rows ${terminal.rows} cols ${terminal.columns}`
  try {
    await readLine(READY)
    child.stdin.write(`${oneLine(`${begin}\n${ANNOUNCE}\n${script}`)}\n`)
    const [, pid, tty = ''] = await readLine(STARTED)
    return { child, pid: Number(pid), tty: terminal && tty }
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
}

const ANNOUNCE = 'echo "deputy-program $$ $(tty)"'

/** For `printf %b`: the shell on the node reads one line. */
const oneLine = (script: string): string => script.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')

/** Waits for a line and skips what is before it, such as a greeting. What follows stays in the stream. */
const lineReader =
  (child: ChildProcessWithoutNullStreams, signal: AbortSignal, ended: () => Error) =>
  (line: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const { stdout } = child
      let text = ''
      const settle = (end: () => void): void => {
        stdout.pause()
        stdout.off('data', onData)
        child.off('close', onClose)
        child.off('error', onClose)
        signal.removeEventListener('abort', onAbort)
        end()
      }
      const onData = (chunk: Buffer): void => {
        text = (text + chunk.toString('latin1')).slice(-MAX_BANNER)
        const found = line.exec(text)
        if (found === null) return
        const rest = text.slice(found.index + found[0].length)
        settle(() => {
          if (rest !== '') stdout.unshift(Buffer.from(rest, 'latin1'))
          resolve(found)
        })
      }
      const onClose = (): void => settle(() => reject(ended()))
      const onAbort = (): void => settle(() => reject(signal.reason))
      if (signal.aborted) return reject(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      child.once('close', onClose)
      child.once('error', onClose)
      stdout.on('data', onData)
      stdout.resume()
    })
