import { execFile } from 'node:child_process'
import { homedir } from 'node:os'
import { promisify } from 'node:util'
import { AppError } from '../../jobs/errors.ts'
import { didYouMean } from '../../jobs/nearest.ts'
import type { Context } from '../context.ts'
import { quoteArgv } from '../manifest/shell.ts'
import { CLIENT_NAMES, CLIENTS, type McpClient, type ServerEntry } from './clients.ts'
import { addText, addToJson } from './edit-file.ts'
import { serverCommand } from './server-command.ts'

export interface InstallOptions {
  readonly client: string
  readonly name: string
  readonly print: boolean
  readonly json: boolean
  /** More arguments for `deputy mcp`. */
  readonly flags: readonly string[]
}

/** Adds Deputy to a client's configuration, or prints how. The rest of the configuration stays. */
export const installClient = async (context: Context, options: InstallOptions): Promise<number> => {
  const client = clientOf(options.client)
  const { command, args } = serverCommand(context.env)
  const server: ServerEntry = { name: nameOf(options.name), command, args: [...args, ...options.flags] }
  const file = client.file?.(context.env.HOME || homedir(), process.platform)
  if (options.json) return context.printJson({ client: options.client, file: file ?? null, server })
  if (options.print) return context.print(preview(client, server, file))
  if (client.program) {
    await runProgram(client.program(server))
    return context.print(`Added Deputy to ${options.client}.\n`)
  }
  const changed = client.text
    ? await addText(file!, client.text(server))
    : await addToJson(file!, { key: client.key!, name: server.name, entry: client.entry!(server) })
  return context.print(`${changed ? 'Added to' : 'Nothing to do: it is already in'} ${file}\n`)
}

const clientOf = (name: string): McpClient => {
  const client: McpClient | undefined = Object.hasOwn(CLIENTS, name)
    ? CLIENTS[name as keyof typeof CLIENTS]
    : undefined
  if (client) return client
  throw new AppError('invalid', `Unknown client '${name}'${didYouMean(name, CLIENT_NAMES) || '.'}`, {
    hint: `Known clients: ${CLIENT_NAMES.join(', ')}. For any other: deputy mcp install project --print`,
  })
}

const nameOf = (name: string): string => {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(name)) return name
  throw new AppError('invalid', `Invalid server name '${name}': use letters, digits, - and _.`)
}

const preview = (client: McpClient, server: ServerEntry, file: string | undefined): string => {
  if (client.program) return `${quoteArgv(client.program(server))}\n`
  const body =
    client.text?.(server).text ??
    `${JSON.stringify({ [client.key!]: { [server.name]: client.entry!(server) } }, null, 2)}\n`
  return client.text ? `# ${file}\n${body}` : `// ${file}\n${body}`
}

const runProgram = async (argv: readonly string[]): Promise<void> => {
  const [program = '', ...args] = argv
  try {
    await promisify(execFile)(program, args, { timeout: 60_000 })
  } catch (error) {
    const detail = error as { code?: unknown; stderr?: string; message: string }
    const missing = detail.code === 'ENOENT'
    const why = missing ? `${program} is not installed here` : detail.stderr?.trim() || detail.message
    throw new AppError('unsupported', `${why}.`.replace(/\.\.$/, '.'), {
      hint: `By hand: ${quoteArgv(argv)}`,
      cause: error,
    })
  }
}
