import { randomBytes } from 'node:crypto'
import { Duplex } from 'node:stream'
import { WORKSPACE } from '../../jobs/paths.ts'
import type { Session, SessionRequest, TerminalSize } from '../../ports.ts'
import { sizeCommand, terminalCommand } from '../../runner/terminal-command.ts'
import type { GuestLink } from './guest-link.ts'
import type { GuestProgram } from './guest-program.ts'
import { runInGuest, SYSTEM_PATH } from './run-in-guest.ts'

/** Runs a program in a VM beside the job. It ends with its connection. */
export const openMicrovmSession = (
  link: GuestLink,
  { argv, env, terminal }: SessionRequest,
  signal: AbortSignal,
): Session => {
  const ttyFile = `/tmp/.session-${randomBytes(8).toString('hex')}`
  const variables = {
    PATH: SYSTEM_PATH,
    HOME: WORKSPACE,
    PWD: WORKSPACE,
    DEPUTY_WORKSPACE: WORKSPACE,
    ...env,
  }
  const program = link.run({
    argv:
      terminal === undefined
        ? ['/usr/bin/env', ...argv]
        : terminalCommand(withEnvironment(argv, env), terminal, `echo "$tty" >${ttyFile}`),
    env: variables,
    session: true,
  })
  const stream = streamOf(program)
  const onAbort = (): void => void stream.destroy()
  signal.addEventListener('abort', onAbort, { once: true })
  stream.once('close', () => signal.removeEventListener('abort', onAbort))
  if (signal.aborted) onAbort()
  return {
    stream,
    exit: program.exit,
    resize: size => {
      if (terminal === undefined) return
      const resized = runInGuest(link, {
        argv: ['/bin/sh', '-c', resizeCommand(ttyFile, size)],
        input: '',
        signal,
        timeoutMs: RESIZE_MS,
      })
      // A program that has just ended has no terminal any more.
      resized.catch(() => undefined)
    },
  }
}

const RESIZE_MS = 60_000

/** Shells drop variables such as PS1 from their environment. */
const withEnvironment = (argv: readonly string[], env: SessionRequest['env']): string[] => [
  ...['env', ...Object.entries(env).map(([name, value]) => `${name}=${value}`)],
  ...argv,
]

/** The file is written when the terminal is made. */
const resizeCommand = (ttyFile: string, size: TerminalSize): string =>
  `n=0; until [ -s ${ttyFile} ] || [ $n -ge 300 ]; do sleep 0.1; n=$((n + 1)); done
read -r tty <${ttyFile} && ${sizeCommand(size).replace('stty ', 'stty -F "$tty" ')}`

/** Its stdin, and both of its output streams in one. */
const streamOf = (program: GuestProgram): Duplex => {
  const { stdin, stdout, stderr } = program
  const stream: Duplex = new Duplex({
    autoDestroy: false,
    read: () => {
      stdout.resume()
      stderr.resume()
    },
    write: (chunk: Buffer, _encoding, done) => void stdin.write(chunk, () => done()),
    final: done => void stdin.end(() => done()),
    destroy: (error, done) => {
      program.drop()
      done(error)
    },
  })
  let open = 2
  for (const output of [stdout, stderr]) {
    output.on('data', (chunk: Buffer) => {
      if (!stream.push(chunk)) output.pause()
    })
    output.once('close', () => {
      if (--open === 0) stream.push(null)
    })
  }
  return stream
}
