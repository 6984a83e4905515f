import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface ServerProcess<T> {
  /** What it said once it listened. */
  readonly said: T
  /** Seconds of processor that it has used so far. */
  processor(): number
  stop(): Promise<void>
}

/** A server in a process of its own that says one line of JSON when it listens, and ends with its standard input. */
export const startServer = async <T>(program: string, args: readonly string[]): Promise<ServerProcess<T>> => {
  const file = fileURLToPath(new URL(program, import.meta.url))
  const child = spawn(process.execPath, [file, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = new Promise<void>(resolve => child.once('exit', () => resolve()))
  return {
    said: JSON.parse(await firstLine(child)) as T,
    processor: () => processorSeconds(child.pid),
    stop: async () => {
      child.stdin.end()
      await ended
    },
  }
}

/** Fields 14 and 15 of its stat, in hundredths. */
const processorSeconds = (pid: number | undefined): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

const firstLine = (child: ChildProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = ''
    child.stdout!.setEncoding('utf8').on('data', piece => {
      text += piece
      if (text.includes('\n')) resolve(text.slice(0, text.indexOf('\n')))
    })
    child.once('exit', code => reject(new Error(`a server of the benchmark ended with ${code}`)))
  })
