import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { removeDirectory } from './remove-directory.ts'

export const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

interface Finished {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  readonly bytes: Buffer
}

interface RunOptions {
  readonly input?: string
  readonly cwd?: string
  readonly env?: NodeJS.ProcessEnv
}

/** The product in a home of its own, driven through its command line as a user does. */
export interface TestCli {
  readonly home: string
  readonly env: NodeJS.ProcessEnv
  run(args: readonly string[], options?: RunOptions): Promise<Finished>
  /** Runs and parses what `--json` printed; anything else on stdout makes it fail. */
  json<T = Record<string, unknown>>(args: readonly string[], options?: RunOptions): Promise<T>
  start(args: readonly string[], options?: RunOptions): Started
  /** A shell command line in which `deputy` is ours. */
  shell(line: string): Promise<Finished>
  /** On a terminal; stdout and stderr come together. */
  tty(args: readonly string[], env?: NodeJS.ProcessEnv, typed?: string): Promise<Finished>
  close(): Promise<void>
}

interface Started {
  readonly child: ChildProcess
  readonly finished: Promise<Finished>
  /** What it has printed to stdout so far. */
  stdout(): string
  /** Resolves when stdout contains the text. */
  saw(text: string): Promise<void>
}

export const createTestCli = (extra: NodeJS.ProcessEnv = {}): TestCli => {
  const home = mkdtempSync(join(tmpdir(), 'deputy-cli-'))
  const { NO_COLOR: _, FORCE_COLOR: __, ...inherited } = process.env
  const env = { ...inherited, DEPUTY_HOME: home, DEPUTY_HTTP: 'false', ...extra }

  const launch = (command: string, args: readonly string[], options: RunOptions = {}): Started => {
    const child = spawn(command, args, {
      cwd: options.cwd ?? home,
      env: { ...env, ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    const out: Buffer[] = []
    const err: Buffer[] = []
    child.stdout.on('data', chunk => out.push(chunk))
    child.stderr.on('data', chunk => err.push(chunk))
    child.stdin.on('error', () => {})
    child.stdin.end(options.input ?? '')
    const stdout = () => Buffer.concat(out).toString()
    const finished = new Promise<Finished>(resolve =>
      child.on('close', (code, signal) =>
        resolve({
          code,
          signal,
          stdout: stdout(),
          stderr: Buffer.concat(err).toString(),
          bytes: Buffer.concat(out),
        }),
      ),
    )
    const saw = (text: string) =>
      until(() => {
        if (stdout().includes(text)) return true
        if (child.exitCode !== null) throw new Error(`ended without '${text}': ${Buffer.concat(err)}`)
        return false
      }, `'${text}' on stdout`)
    return { child, finished, stdout, saw }
  }

  const start: TestCli['start'] = (args, options) => launch(process.execPath, [MAIN, ...args], options)
  const run: TestCli['run'] = (args, options) => start(args, options).finished

  return {
    home,
    env,
    start,
    run,
    json: async (args, options) => {
      const { stdout, stderr } = await run(args, options)
      try {
        return JSON.parse(stdout)
      } catch {
        throw new Error(`no JSON from deputy ${args.join(' ')}: ${stdout}${stderr}`)
      }
    },
    shell: line =>
      launch('bash', ['-c', `deputy() { "${process.execPath}" "${MAIN}" "$@"; }; ${line}`]).finished,
    tty: (args, more = {}, typed = '') => {
      const command = [process.execPath, MAIN, ...args].map(word => `'${word.replaceAll("'", "'\\''")}'`)
      const terminal = { TERM: 'xterm-256color', SHELL: '/bin/bash', ...more }
      return launch('script', ['-qefc', command.join(' '), '/dev/null'], { env: terminal, input: typed })
        .finished
    },
    close: async () => {
      await run(['daemon', 'stop'])
      removeDirectory(home)
    },
  }
}

export const hasTerminal = spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0

/** Waits for a condition, and says which one when it never comes. */
export const until = async (
  condition: () => boolean | Promise<boolean>,
  what: string,
  deadlineMs = 90_000,
): Promise<void> => {
  const deadline = performance.now() + deadlineMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited ${deadlineMs} ms in vain for ${what}`)
    await new Promise(resolve => setTimeout(resolve, 25))
  }
}

/** Why no job can run here, or undefined when one can. */
export const noProvider = async (): Promise<string | undefined> => {
  const cli = createTestCli()
  try {
    const report = await cli.json<{ ok: boolean }>(['doctor', '--json'])
    return report.ok ? undefined : 'no runtime is ready on this computer'
  } finally {
    await cli.close()
  }
}
