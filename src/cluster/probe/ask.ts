import { Readable } from 'node:stream'
import { AppError } from '../../jobs/errors.ts'
import type { SshTarget } from '../ssh/arguments.ts'
import type { Ssh } from '../ssh/session.ts'
import { PROBE_PROGRAM } from './program.ts'
import { type ProbeReport, parseReport } from './report.ts'

/** One word there and back over a session that stands, then the program. */
const GREETING = 'echo hello; read -r _; echo again; exec sh'
const MAX_ANSWER = 256 * 1024

/** Asks a node what it is and how it fares; how far away it is, is the time of a word there and back. */
export const askNode = async (
  ssh: Ssh,
  target: SshTarget,
  signal: AbortSignal,
): Promise<{ report: ProbeReport; latencyMs: number }> => {
  let text = ''
  let asked: number | undefined
  let latencyMs: number | undefined
  let greet = (): void => undefined
  const greeted = new Promise<void>(resolve => {
    greet = resolve
  })
  async function* input(): AsyncGenerator<string> {
    await greeted
    asked = performance.now()
    yield `\n${PROBE_PROGRAM}`
  }
  const onStdout = (chunk: Buffer): 'enough' | undefined => {
    text += chunk.toString('utf8')
    if (text.includes('hello\n')) greet()
    if (asked !== undefined && text.includes('again\n')) latencyMs ??= performance.now() - asked
    return text.length > MAX_ANSWER ? 'enough' : undefined
  }
  try {
    await ssh.run({ target, script: GREETING, input: Readable.from(input()), onStdout, signal })
  } finally {
    greet()
  }
  return { report: reportOf(text, target.id), latencyMs: Math.max(1, Math.round(latencyMs ?? 0)) }
}

const reportOf = (text: string, id: string): ProbeReport => {
  try {
    return parseReport(text)
  } catch (error) {
    throw new AppError(
      'unavailable',
      `node ${id} answered what makes no sense: ${(error as Error).message}`,
      {
        hint: 'Does it run Linux or macOS, and does its login shell print nothing by itself?',
        cause: error,
      },
    )
  }
}
