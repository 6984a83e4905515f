import { AppError } from '../../jobs/errors.ts'
import type { SshTarget } from '../ssh/arguments.ts'
import { failureError, neverConnected, sshFailureOf } from '../ssh/errors.ts'
import type { Ssh } from '../ssh/session.ts'
import { createFrameReader, type Frame } from './frames.ts'
import { exportLines } from './quote.ts'
import { newMark, type Parameters, requestFor } from './request.ts'

export interface RemoteCommand {
  id: string
  /** Bash on the far side; sh where there is none. */
  command: string
  /** The same without a shell around it, for a holder that needs none. */
  argv?: readonly string[] | undefined
  /** Absolute, or relative to the home there; a clean directory of its own unless given. */
  cwd?: string | undefined
  /** A workspace of ours to run in; it is made when it is not there yet. */
  workspace?: string | undefined
  env?: Readonly<Record<string, string>> | undefined
  timeoutSeconds?: number | undefined
  /** Between TERM and KILL. */
  graceSeconds?: number | undefined
  /** How much of each stream the node keeps for whoever comes later; the middle goes first, and is counted. */
  keep?: { head: number; tail: number } | undefined
  /** Base64. Kept with the command in a private file, for whoever follows it after a restart; no secrets in clear. */
  memo?: string | undefined
}

export interface FollowOptions {
  target: SshTarget
  /** Bytes of output already taken over. */
  from?: number
  /** From here on the node, in this life of it, may have got the request. */
  onSent?: (boot: string | undefined) => void
  onStarted?: (fresh: boolean) => void
  onOutput: (stream: 'stdout' | 'stderr', data: Buffer) => void
  /** So many bytes were printed here that the node has not kept. */
  onDropped?: (bytes: number) => void
  onAlive?: () => void
  /** When it gives a promise, no more output is read until it resolves. */
  ready?: () => Promise<void> | undefined
  /** Lets go: the command lives on. */
  signal: AbortSignal
}

export type RemoteEnd =
  | { kind: 'exit'; code: number; how: 'exit' | 'timeout' | 'cancel'; startedAt: number; endedAt: number }
  | { kind: 'lost'; reason: string }
  /** `fault`: the node could not; otherwise it was not to. */
  | { kind: 'not-started'; reason: string; fault: boolean }
  /** Somebody else follows it now. */
  | { kind: 'superseded' }
  /** The connection broke, or could not be made; `sent` when the node may have got the request. */
  | { kind: 'disconnected'; error: AppError; sent: boolean }

export interface RemoteJob {
  id: string
  state: 'running' | 'ended' | 'lost'
  startedAt: number
}

export interface RemoteShim {
  /** Starts the command unless it was started before under this id, and stays with it. */
  run(command: RemoteCommand, options: FollowOptions): Promise<RemoteEnd>
  /** Stays with a command that was started before; never starts it. */
  attach(id: string, options: FollowOptions): Promise<RemoteEnd>
  /** Ends the whole tree of processes; returns the numbers of those that survived. */
  cancel(
    id: string,
    options: { target: SshTarget; signal: AbortSignal; graceSeconds?: number },
  ): Promise<number[]>
  /** Ends what is left of it and deletes its directory; returns the ids that are confirmed gone. */
  remove(ids: readonly string[], options: Where): Promise<string[]>
  list(options: Where): Promise<RemoteJob[]>
  memoOf(id: string, options: Where): Promise<string>
  /**
   * Ends what runs in workspaces and deletes them; tells which are confirmed gone. Of the commands in `bar` the node
   * may not have heard yet, and they are not to start when it does.
   */
  release(ids: readonly string[], options: Where & { bar?: readonly string[] }): Promise<Set<string>>
  claims(options: Where): Promise<{ id: string; createdAt: number }[]>
}

export interface Where {
  target: SshTarget
  signal: AbortSignal
}

const JOB_ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/
const SHORT_MS = 20_000

/** `owner` keeps apart what several daemons do on one node: each sees and ends only its own. */
export const createShim = (
  ssh: Ssh,
  owner: string,
  /** `shell`: hold commands by the shell alone, as on a node without Perl. */
  holder: 'best' | 'shell' = 'best',
): RemoteShim => {
  const own: Parameters = { D_OWNER: checkedId(owner) }
  const follow = async (
    parameters: Parameters,
    verb: 'run' | 'attach',
    options: FollowOptions,
  ): Promise<RemoteEnd> => {
    const { target, signal } = options
    let end: RemoteEnd | undefined
    let sent = false
    const onOpen = (boot: string | undefined): void => {
      sent = true
      options.onSent?.(boot)
    }
    const onFrame = (frame: Frame): void => {
      if (frame.kind === 'started') options.onStarted?.(frame.fresh)
      else if (frame.kind === 'output') options.onOutput(frame.stream, frame.data)
      else if (frame.kind === 'dropped') options.onDropped?.(frame.bytes)
      else if (frame.kind === 'alive') options.onAlive?.()
      else end ??= endOf(frame)
    }
    const mark = newMark()
    const frames = createFrameReader(mark, onFrame)
    const read = (chunk: Buffer): 'enough' | undefined | Promise<void> => {
      frames(chunk)
      return end ? 'enough' : options.ready?.()
    }
    const request = requestFor({ ...own, ...parameters, D_FROM: String(options.from ?? 0) }, mark, verb)
    try {
      const script = parameters.D_PLAIN === '1' ? request(undefined) : request
      const result = await ssh.run({ target, script, signal, onOpen, onStdout: read })
      return (
        end ?? { kind: 'disconnected', sent, error: failureError(target, 'lost', { stderr: result.stderr }) }
      )
    } catch (error) {
      if (end) return end
      if (error instanceof AppError && sshFailureOf(error))
        return { kind: 'disconnected', sent: sent && !neverConnected(error), error }
      throw error
    }
  }

  const ask = async (parameters: Parameters, verb: string, { target, signal }: Where): Promise<string[]> => {
    const lines: string[] = []
    const mark = newMark()
    const frames = createFrameReader(mark, frame => {
      if (frame.kind === 'line') lines.push(frame.text)
    })
    const onStdout = (chunk: Buffer): undefined => void frames(chunk)
    // A session of its own: the one that was opened ahead is for the next command.
    const script = requestFor({ ...own, ...parameters }, mark, `${verb}\necho end`)(undefined)
    await ssh.run({ target, signal, script, onStdout, timeoutMs: SHORT_MS })
    if (lines.at(-1) !== 'end') throw failureError(target, 'lost')
    return lines.slice(0, -1)
  }

  return {
    run: (command, options) => {
      const parameters = {
        D_ID: checkedId(command.id),
        D_CMD: command.command,
        D_ENV: exportLines(command.env ?? {}),
        D_ENVX: packed(variables(command.env ?? {})),
        D_ARGX: packed(command.argv ?? []),
        D_CWD: command.cwd ?? '',
        D_WORK: command.workspace === undefined ? '' : checkedId(command.workspace),
        D_MEMO: checkedMemo(command.memo ?? ''),
        D_TIMEOUT: String(Math.ceil(command.timeoutSeconds ?? 0)),
        D_GRACE: tenths(command.graceSeconds),
        D_KEEP: ringOf(command.keep ?? DEFAULT_KEEP),
      }
      const plain = holder === 'shell' || Object.values(parameters).some(value => value.length > MAX_VARIABLE)
      return follow({ ...parameters, D_PLAIN: plain ? '1' : '' }, 'run', options)
    },
    attach: (id, options) => follow({ D_ID: checkedId(id) }, 'attach', options),
    cancel: async (id, options) => {
      const parameters = { D_ID: checkedId(id), D_GRACE: tenths(options.graceSeconds) }
      const lines = await ask(parameters, 'cancel', options)
      return lines
        .flatMap(line => line.split(' ').slice(2))
        .map(Number)
        .filter(Number.isInteger)
        .filter(pid => pid > 0)
    },
    remove: async (ids, options) => {
      if (ids.length === 0) return []
      const lines = await ask({ D_ID: ids.map(checkedId).join(' ') }, 'remove', options)
      return lines.filter(line => line.startsWith('g ')).map(line => line.slice(2))
    },
    list: async options => {
      const lines = await ask({}, 'list', options)
      return lines.filter(line => line.startsWith('j ')).map(parseJob)
    },
    memoOf: async (id, options) => {
      const lines = await ask({ D_ID: checkedId(id) }, 'memo', options)
      return lines.join('')
    },
    release: async (ids, options) => {
      if (ids.length === 0) return new Set()
      const lines = await ask(
        { D_ID: ids.map(checkedId).join(' '), D_BAR: (options.bar ?? []).map(checkedId).join(' ') },
        'release',
        options,
      )
      return new Set(lines.filter(line => line.startsWith('g ')).map(line => line.slice(2)))
    },
    claims: async options => {
      const lines = await ask({}, 'claims', options)
      return lines
        .map(line => line.split(' '))
        .filter(([kind]) => kind === 'w')
        .map(([, id = '', at]) => ({ id, createdAt: (Number(at) || 0) * 1000 }))
    },
  }
}

const DEFAULT_KEEP = { head: 32 * 1024 * 1024, tail: 32 * 1024 * 1024 }
/** What a reader must not rely on, as it may be overwritten under its hands. */
const RING_SLACK = 256 * 1024

const ringOf = ({ head, tail }: { head: number; tail: number }): string =>
  `${Math.max(0, Math.ceil(head))} ${Math.max(0, Math.ceil(tail)) + RING_SLACK}`

/** The most Linux takes in one variable, less some room; what is larger goes the way of the shell. */
const MAX_VARIABLE = 120_000

/** Words in a form that needs no shell. */
const packed = (words: readonly string[]): string => Buffer.from(words.join('\0')).toString('hex')

const variables = (env: Readonly<Record<string, string>>): string[] =>
  Object.entries(env)
    .filter(([name]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
    .map(([name, value]) => `${name}=${value}`)

/** The shell counts in whole numbers. */
const tenths = (seconds = 2): string => String(Math.round(seconds * 10))

/** Ids become file names and shell words. */
const checkedId = (id: string): string => {
  if (!JOB_ID.test(id)) throw new AppError('invalid', `"${id}" cannot be the id of a command on a node`)
  return id
}

const checkedMemo = (memo: string): string => {
  if (!/^[A-Za-z0-9+/=]*$/.test(memo)) throw new AppError('invalid', 'a memo must be base64')
  return memo
}

const endOf = (frame: Frame): RemoteEnd | undefined => {
  switch (frame.kind) {
    case 'ended':
      return {
        kind: 'exit',
        code: frame.code,
        how: frame.how,
        startedAt: frame.from * 1000,
        endedAt: frame.to * 1000,
      }
    case 'lost':
      return { kind: 'lost', reason: frame.reason }
    case 'not-started':
      return { kind: 'not-started', reason: frame.reason, fault: frame.fault }
    case 'superseded':
      return { kind: 'superseded' }
    default:
      return undefined
  }
}

const parseJob = (line: string): RemoteJob => {
  const [, id = '', state, from] = line.split(' ')
  return {
    id,
    state: state === 'ended' || state === 'lost' ? state : 'running',
    startedAt: (Number(from) || 0) * 1000,
  }
}
