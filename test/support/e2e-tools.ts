import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

interface Tools {
  readonly node: string
  readonly conformance: string
  readonly inspector: string
  readonly claude: string
  readonly mcpb: string
}

export type ToolsOrReason =
  | { readonly tools: Tools; readonly reason?: never }
  | { readonly tools?: never; readonly reason: string }

/**
 * The outside tools of the end-to-end tests, or why they are not here: npm may not reach anything. With
 * DEPUTY_REQUIRE_E2E=1, as in CI, that is a failure.
 */
export const findTools = (): ToolsOrReason => {
  const installed = spawnSync('sh', [join(ROOT, 'scripts/e2e-tools.sh')], {
    encoding: 'utf8',
    timeout: 600_000,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const modules = join(installed.stdout?.trim() ?? '', 'node_modules')
  if (installed.status === 0 && existsSync(modules)) {
    const claude = ['linux-x64', 'linux-arm64']
      .map(platform => join(modules, `@anthropic-ai/claude-code-${platform}/claude`))
      .find(existsSync)
    return {
      tools: {
        node: join(modules, '.bin/node'),
        conformance: join(modules, '@modelcontextprotocol/conformance/dist/index.js'),
        inspector: join(modules, '@modelcontextprotocol/inspector/clients/launcher/build/index.js'),
        claude: claude ?? join(modules, '.bin/claude'),
        mcpb: join(modules, '@anthropic-ai/mcpb/dist/cli/cli.js'),
      },
    }
  }
  const reason = `the outside tools could not be installed: ${installed.stderr?.trim().split('\n').at(-1) ?? installed.error?.message}`
  if (process.env.DEPUTY_REQUIRE_E2E === '1') throw new Error(reason)
  return { reason }
}

/** Skips a test that needs something this machine lacks; where nothing may be skipped, fails it. */
export const need = (
  skip: (condition: boolean, note: string) => void,
  met: boolean,
  reason: string,
): void => {
  if (!met && process.env.DEPUTY_REQUIRE_E2E === '1') throw new Error(reason)
  skip(!met, reason)
}

export interface Ran {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunToolOptions {
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
  readonly input?: string
  readonly timeoutMs?: number
}

/** Runs a program to its end without blocking the servers in this process. */
export const runTool = async (
  program: string,
  args: readonly string[],
  { env = process.env, cwd = ROOT, input, timeoutMs = 150_000 }: RunToolOptions = {},
): Promise<Ran> => {
  const child = spawn(program, args, { env, cwd, stdio: ['pipe', 'pipe', 'pipe'], timeout: timeoutMs })
  child.stdin.end(input ?? '')
  const read = async (stream: AsyncIterable<Buffer>) => {
    const chunks: Buffer[] = []
    for await (const chunk of stream) chunks.push(chunk)
    return Buffer.concat(chunks).toString()
  }
  const exit = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  const [status, stdout, stderr] = await Promise.all([exit, read(child.stdout), read(child.stderr)])
  return { status, stdout, stderr }
}
