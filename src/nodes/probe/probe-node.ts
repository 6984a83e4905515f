import { Readable } from 'node:stream'
import { AppError } from '../../jobs/errors.ts'
import type { SshTarget } from '../ssh/ssh-arguments.ts'
import type { Ssh } from '../ssh/ssh-session.ts'
import { probeProgram } from './probe-program.ts'
import { type ProbeReport, parseReport } from './probe-report.ts'

/** Echoes one line to measure the latency of the open session, then runs the probe program. */
const GREETING = 'echo hello; read -r _; echo again; exec sh'
const MAX_ANSWER = 256 * 1024

/** Probes the system and load of a node. The latency is the round trip of one line. */
export const probeNode = async (
  ssh: Ssh,
  target: SshTarget,
  signal: AbortSignal,
): Promise<{ report: ProbeReport; latencyMs: number }> => {
  let text = ''
  let sentAt: number | undefined
  let latencyMs: number | undefined
  let greet = (): void => undefined
  const greeted = new Promise<void>(resolve => {
    greet = resolve
  })
  async function* input(): AsyncGenerator<string> {
    await greeted
    sentAt = performance.now()
    yield `\n${probeProgram()}`
  }
  const onStdout = (chunk: Buffer): 'enough' | undefined => {
    text += chunk.toString('utf8')
    if (text.includes('hello\n')) greet()
    if (sentAt !== undefined && text.includes('again\n')) latencyMs ??= performance.now() - sentAt
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
    throw new AppError('unavailable', `Invalid answer from node ${id}: ${(error as Error).message}.`, {
      hint: 'Check that it runs Linux or macOS, and that its login shell prints nothing.',
      cause: error,
    })
  }
}
