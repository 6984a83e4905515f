import { AppError, type ErrorBody } from '../jobs/errors.ts'
import type { StopReason } from '../ports.ts'
import type { Channel, ExchangeHandlers } from './channel.ts'
import type { Answer, Request } from './frames.ts'
import type { RunExit } from './run-result.ts'

export type StartRequest = Extract<Request, { kind: 'start' }>
export type FollowRequest = Extract<Request, { kind: 'follow' }>

export interface FollowHandlers extends Pick<ExchangeHandlers, 'onSent' | 'ready' | 'signal'> {
  /** `at`: when, in milliseconds since 1970, if the runner knows. */
  onStarted?(fresh: boolean, at: number | undefined): void
  onOutput(stream: 'stdout' | 'stderr', data: Buffer, at: number | undefined): void
  onProgress?(text: string): void
  /** So many bytes were printed here that the runner has not kept. */
  onDropped?(bytes: number): void
  /** The runner has reported something. */
  onHeartbeat?(): void
}

export type RunEnd =
  | {
      kind: 'exit'
      code: number
      how: 'exit' | 'timeout' | 'stop'
      /** 0 when the follower has seen it. */
      startedAt: number
      endedAt: number
      /** From a runner that has collected the files already. */
      result?: RunExit
    }
  | { kind: 'lost'; reason: string; error?: AppError }
  /** `fault`: something is wrong on the machine; otherwise it was given up before. */
  | { kind: 'not-started'; reason: string; fault: boolean; error?: AppError }
  /** Somebody else follows it now. */
  | { kind: 'superseded' }
  /** The connection broke or could not be made; `sent` when the runner may have received the request. */
  | { kind: 'disconnected'; error: AppError; sent: boolean }

/** Starts or follows a run over one connection, to its end or that of the connection. */
export const followOnce = async (
  channel: Channel,
  request: StartRequest | FollowRequest,
  { signal, onSent, ready, ...handlers }: FollowHandlers,
): Promise<RunEnd> => {
  let end: RunEnd | undefined
  const { cut, sent } = await channel.exchange([request], {
    signal,
    onSent,
    ready,
    onAnswer: (answer, data) => {
      if (!('run' in answer) || answer.run !== request.run || end) return
      if (answer.kind === 'started') handlers.onStarted?.(answer.fresh, answer.at)
      else if (answer.kind === 'output') handlers.onOutput(answer.stream, data, answer.at)
      else if (answer.kind === 'progress') handlers.onProgress?.(answer.text)
      else if (answer.kind === 'dropped') handlers.onDropped?.(answer.count)
      else end = endOf(answer)
      // Last: a heartbeat is stored together with the output.
      handlers.onHeartbeat?.()
    },
  })
  if (end) return end
  return cut
    ? { kind: 'disconnected', error: cut, sent }
    : { kind: 'lost', reason: 'the runner did not tell how it ended' }
}

const endOf = (answer: Answer): RunEnd | undefined => {
  switch (answer.kind) {
    case 'exit':
      return {
        kind: 'exit',
        code: answer.code,
        how: answer.how,
        startedAt: answer.startedAt * 1000,
        endedAt: answer.endedAt * 1000,
        ...(answer.result && { result: answer.result }),
      }
    case 'lost':
      return { kind: 'lost', reason: answer.reason, ...errorOf(answer) }
    case 'refused':
      return { kind: 'not-started', reason: answer.reason, fault: answer.fault, ...errorOf(answer) }
    case 'superseded':
      return { kind: 'superseded' }
    default:
      return undefined
  }
}

const errorOf = ({ error }: { error?: ErrorBody }): { error?: AppError } =>
  error ? { error: AppError.fromBody(error) } : {}

const SHORT_MS = 20_000

/** Asks for something short; throws when the answers are not complete. */
const ask = async (
  channel: Channel,
  requests: readonly Request[],
  signal: AbortSignal,
): Promise<Answer[]> => {
  const answers: Answer[] = []
  const { cut } = await channel.exchange(requests, {
    signal,
    timeoutMs: SHORT_MS,
    onAnswer: answer => void answers.push(answer),
  })
  if (cut) throw cut
  return answers
}

/** The runner counts in whole numbers. */
export const tenths = (seconds: number): number => Math.round(seconds * 10)

/** Ends the processes of a run; returns those that survived. A run that has not arrived yet never starts. */
export const stopRun = async (
  channel: Channel,
  {
    run,
    graceSeconds,
    why = 'cancel',
    signal,
  }: { run: string; graceSeconds: number; why?: StopReason['kind']; signal: AbortSignal },
): Promise<readonly number[]> => {
  const answers = await ask(channel, [{ kind: 'stop', run, graceTenths: tenths(graceSeconds), why }], signal)
  return answers.flatMap(answer => (answer.kind === 'stopped' ? answer.left : []))
}

/** Reads the sealed context of a run. Empty if the runner does not know the run, which then never starts. */
export const readContext = async (channel: Channel, run: string, signal: AbortSignal): Promise<string> => {
  const answers = await ask(channel, [{ kind: 'context', run }], signal)
  return answers.flatMap(answer => (answer.kind === 'context' ? [answer.context] : [])).join('')
}

/** Ends everything in these workspaces and deletes them; returns the ones that are confirmed gone. */
export const releaseWorkspaces = async (
  channel: Channel,
  { workspaces, bar, signal }: { workspaces: readonly string[]; bar: readonly string[]; signal: AbortSignal },
): Promise<ReadonlySet<string>> => {
  const answers = await ask(
    channel,
    [
      ...bar.map(run => ({ kind: 'bar', run }) as const),
      ...workspaces.map(workspace => ({ kind: 'release', workspace }) as const),
    ],
    signal,
  )
  return new Set(
    answers.flatMap(answer =>
      answer.kind === 'released' && answer.left.length === 0 ? [answer.workspace] : [],
    ),
  )
}

export const listWorkspaces = async (
  channel: Channel,
  signal: AbortSignal,
): Promise<{ id: string; createdAt: number }[]> => {
  const answers = await ask(channel, [{ kind: 'workspaces' }], signal)
  return answers.flatMap(answer =>
    answer.kind === 'workspace' ? [{ id: answer.workspace, createdAt: answer.createdAt * 1000 }] : [],
  )
}
