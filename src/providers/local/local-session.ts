import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { compiledFile } from '../../files/compiled-file.ts'
import { AppError } from '../../jobs/errors.ts'
import type { SessionRequest, TerminalSize } from '../../ports.ts'
import { shellQuote as quote } from '../../runner/shell-words.ts'
import { sizeCommand, terminalCommand } from '../../runner/terminal-command.ts'
import type { LocalMachine } from './local-machine.ts'

/** A program that runs in a local machine beside its job, as the shim sees it. */
export interface LocalSession {
  readonly input: Writable
  readonly output: Readable
  /** Resolves when the program has ended and its output was read; null when it was killed with its machine. */
  readonly ended: Promise<number | null>
  resize(size: TerminalSize): void
  kill(): void
}

const OPEN_MS = 30_000
/** How long the exit status may follow the end of the output. */
const STATUS_MS = 5_000

/**
 * Starts a program in the machine. Its stdin and stdout are named pipes, made inside and opened here through the
 * root directory of the machine. The job may have put something else in their place, so only pipes are accepted.
 */
export const openLocalSession = async (
  machine: LocalMachine,
  id: string,
  { argv, env, terminal }: SessionRequest,
): Promise<LocalSession> => {
  const { plan } = machine
  const pipe = `${plan.sessionDirectory}/.session-${id}`
  const reports = readReports(machine, id)
  let tty: string | undefined
  void reports.of('tty').then(
    path => {
      if (TTY.test(path)) tty = path
    },
    () => {},
  )
  const command =
    terminal === undefined
      ? ['sh', '-c', 'exec 3>&-; exec "$@"', 'sh', ...argv]
      : terminalCommand(argv, terminal, `echo "session ${id} tty $tty" >&3; exec 3>&-`)
  machine.sendToSessions(sessionCommand({ plan, env, words: [id, pipe, ...command] }))
  const pid = Number(await inTime(reports.of('made')))
  const root = machine.root()
  if (root === undefined) throw hasEnded()
  // Reading and writing: opening a pipe only for writing fails while nobody reads it.
  const input = new Socket({
    fd: openPipe(`${root}${pipe}.in`, constants.O_RDWR),
    readable: false,
    writable: true,
  })
  const output = new Socket({
    fd: openPipe(`${root}${pipe}.out`, constants.O_RDONLY),
    readable: true,
    writable: false,
  })
  // The program may end at any moment; `ended` tells.
  for (const stream of [input, output]) stream.on('error', () => {})
  const closed = new Promise<void>(resolve => output.once('close', resolve))
  // Until then the pipes have no other end, and what is written to them is lost when they are closed.
  await inTime(reports.of('open'))
  let isOver = false
  const ended = closed.then(async () => {
    const late = new Promise<null>(resolve => setTimeout(resolve, STATUS_MS, null).unref())
    const code = await Promise.race([reports.of('ended').then(Number, () => null), late])
    isOver = true
    reports.close()
    input.destroy()
    return code
  })
  return {
    input,
    output,
    ended,
    resize: size => {
      if (tty !== undefined) machine.sendToSessions(`${sizeCommand(size, tty)} </dev/null\n`)
    },
    // Its terminal closes with it, and the programs in it get SIGHUP.
    kill: () => {
      if (!isOver) machine.sendToSessions(`kill -9 -${pid} 2>/dev/null\n`)
    },
  }
}

/** What a session reports on the status channel, each thing once. Rejects when the machine has ended. */
const readReports = (machine: LocalMachine, id: string) => {
  const kinds = ['made', 'open', 'tty', 'ended'] as const
  const settle = new Map<string, (value: string) => void>()
  const gone = machine.gone.then((): never => {
    throw hasEnded()
  })
  const reports = new Map(
    kinds.map(kind => [
      kind,
      Promise.race([gone, new Promise<string>(resolve => settle.set(kind, resolve))]),
    ]),
  )
  for (const report of reports.values()) report.catch(() => {})
  const close = machine.onStatus(line => {
    const [, of, kind = '', value = ''] = /^session (\S+) (\S+) (.*)$/.exec(line) ?? []
    if (of === id) settle.get(kind)?.(value)
  })
  return { of: (kind: (typeof kinds)[number]) => reports.get(kind)!, close }
}

const inTime = <T>(report: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(noAnswer()), OPEN_MS)
    report.then(resolve, reject).finally(() => clearTimeout(timer))
  })

const TTY = /^\/dev\/pts\/\d+$/

const PROGRAM = (): string => readFileSync(compiledFile('providers/local/program/session.sh'), 'utf8')

const sessionCommand = ({
  plan,
  env,
  words,
}: {
  plan: LocalMachine['plan']
  env: SessionRequest['env']
  words: readonly string[]
}): string => {
  const variables = { ...plan.jobEnv, ...env, DEPUTY_WORKSPACE: plan.directory }
  return [
    '(',
    ...Object.entries(variables).flatMap(([name, value]) =>
      /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? [`export ${name}=${quote(value)}`] : [],
    ),
    `cd ${quote(plan.directory)}`,
    `exec setsid -f /bin/sh -c ${[PROGRAM(), 'sh', ...words].map(quote).join(' ')}`,
    ') </dev/null\n',
  ].join('\n')
}

const openPipe = (path: string, mode: number): number => {
  const fd = openSync(path, mode | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  if (fstatSync(fd).isFIFO()) return fd
  closeSync(fd)
  throw new AppError('unavailable', 'The job has replaced the pipes of the session.')
}

const hasEnded = (): AppError => new AppError('unavailable', 'The machine ended before the session began.')

const noAnswer = (): AppError =>
  new AppError('unavailable', `The machine did not open a session within ${OPEN_MS / 1000} s.`, {
    hint: 'It needs setsid and mkfifo: apt-get install util-linux coreutils',
  })
