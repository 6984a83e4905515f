import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError } from '../../src/jobs/errors.ts'
import type { RunnerHost } from '../../src/runner/channel.ts'
import { shellChannel } from '../../src/runner/shell-channel.ts'
import { removeDirectory } from './remove-directory.ts'

/** The POSIX runner on this computer, in a shell and with tools of choice, as another system would run it. */
export interface LocalRunner extends RunnerHost {
  readonly home: string
  /** A path below the files of the runner. */
  at(...parts: string[]): string
  dispose(): void
}

export interface LocalRunnerOptions {
  shell: readonly string[]
  /** Programs that stand before those of this computer: a name, and a shell script or the path of a program. */
  tools?: Readonly<Record<string, string>>
  /** Look for processes elsewhere than in /proc, as on macOS. */
  withoutProc?: boolean
  /** Changes every script before it is run. */
  change?(script: string): string
}

export const createLocalRunner = (options: LocalRunnerOptions): LocalRunner => {
  const home = mkdtempSync(join(tmpdir(), 'runner-'))
  const tools = join(home, 'tools')
  mkdirSync(tools)
  for (const [name, body] of Object.entries(options.tools ?? {})) {
    if (body.startsWith('/')) symlinkSync(body, join(tools, name))
    else writeFileSync(join(tools, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 })
  }
  const env = { ...process.env, HOME: home, PATH: `${tools}:${process.env.PATH}` }
  const changed = (script: string): string => {
    const text = options.change?.(script) ?? script
    return options.withoutProc ? text.replaceAll('/proc/', '/nowhere/') : text
  }
  const lost = (stderr: string): AppError => new AppError('unavailable', `the runner ended: ${stderr}`)
  const channel = shellChannel('test', {
    run: ({ script, onOpen, onStdout, signal }) =>
      new Promise((resolve, reject) => {
        const [program = 'sh', ...args] = options.shell
        const child = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'pipe'] })
        let stderr = ''
        onOpen(undefined)
        signal.addEventListener('abort', () => child.kill('SIGKILL'), { once: true })
        child.stdin.on('error', () => undefined)
        child.stdin.end(changed(script))
        child.stderr.on('data', text => {
          stderr += String(text)
        })
        child.stdout.on('data', (chunk: Buffer) => {
          const busy = onStdout(chunk)
          if (busy instanceof Promise) {
            child.stdout.pause()
            void busy.finally(() => child.stdout.resume())
          }
        })
        child.once('error', reject)
        child.once('close', code => resolve({ code: code ?? 255, stderr }))
      }),
    lost,
    isUnsent: () => false,
    isConnectionError: (error): error is AppError => error instanceof AppError,
  })
  return {
    name: 'this computer',
    retries: 0,
    failed: () => undefined,
    connect: async () => ({ ...channel, succeeded: () => undefined, failed: () => undefined }),
    home,
    at: (...parts) => join(home, '.cache/deputy/test', ...parts),
    dispose: () => removeDirectory(home),
  }
}

/** As those of macOS and the BSDs are: `find` prints no formats, `stat` has its own. */
export const BSD_TOOLS = {
  find: 'for word; do [ "$word" = -printf ] && { echo "find: -printf: unknown primary" >&2; exit 1; }; done\nexec /usr/bin/find "$@"',
  stat: '[ "$1" = -f ] || exit 1\nformat=$(echo "$2" | sed "s/%z/%s/; s/%Lp/%a/; s/%N/%n/; s/%m/%Y/")\nshift 2\nexec /usr/bin/stat -c "$format" "$@"',
  date: 'for word; do [ "$word" = -r ] && exit 1; done\nexec /usr/bin/date "$@"',
  cp: 'for word; do case $word in --*) echo "cp: illegal option" >&2; exit 64 ;; esac; done\nexec /usr/bin/cp "$@"',
}
